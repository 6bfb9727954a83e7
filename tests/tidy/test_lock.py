"""The lock file: whole, hashed, in step with pyproject.toml, and free of addresses."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.layers.sink.test_reader import READER

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]


def locked() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", LOCK, re.M))


def test_every_dependency_is_locked_as_the_project_has_it() -> None:
    project, versions = PROJECT["project"], locked()
    for text in (
        *project["dependencies"],
        *project["optional-dependencies"]["feed"],
        *project["optional-dependencies"]["stream"],
        *project["optional-dependencies"]["serve"],
        *GROUPS["dev"],
        *GROUPS["build"],
    ):
        requirement = Requirement(text)
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), (
            f"{text}: run make lock"
        )


def test_what_is_installed_beside_others_has_lower_bounds() -> None:
    """Versions that are fixed could not live in an environment with other packages."""
    project = PROJECT["project"]
    for text in sum(project["optional-dependencies"].values(), project["dependencies"]):
        operators = {specifier.operator for specifier in Requirement(text).specifier}
        assert ">=" in operators, text
        assert operators <= {">=", "<"}, text


def test_a_reader_needs_these_alone() -> None:
    needed = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    assert needed == {"pyarrow", "deltalake", "duckdb", "msgspec", "pyroaring", "pytz"}
    assert needed < set(READER)


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
