"""The lock file: whole, hashed, in step with pyproject.toml, and free of addresses."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]


def locked() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", LOCK, re.M))


def test_every_dependency_is_locked_as_pinned() -> None:
    versions = locked()
    for requirement in (*PROJECT["project"]["dependencies"], *GROUPS["dev"], *GROUPS["build"]):
        name, operator, version = re.fullmatch(r"([A-Za-z0-9._-]+)(==|>=)([^,]+).*", requirement).groups()  # type: ignore[union-attr]
        found = versions[name.lower().replace("_", "-")]
        assert operator == ">=" or found == version, f"{requirement}: run make lock"


def test_build_backend_is_the_locked_one() -> None:
    assert f"cython=={locked()['cython']}" in PROJECT["build-system"]["requires"]


def test_every_package_has_hashes() -> None:
    entries = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.M)[1:]
    assert len(entries) > 30
    for entry in entries:
        assert "--hash=sha256:" in entry, entry


def test_no_addresses() -> None:
    assert "://" not in LOCK
    assert "--index-url" not in LOCK
