"""The lock file: whole, hashed, in step with pyproject.toml, and free of addresses."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.layers.sink.test_reader import READER
from tests.tidy.sources import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
# An extra may have another one's packages, too.
_OWN = "catchment["
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def faults(lock: str, project: dict[str, Any]) -> Iterator[str]:
    """What of a lock file and its pyproject.toml is not as it must be."""
    locked = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock, re.MULTILINE))
    extras = {
        extra: [text for text in texts if not text.startswith(_OWN)]
        for extra, texts in project["project"]["optional-dependencies"].items()
    }
    groups = project["dependency-groups"]
    installed = [*project["project"]["dependencies"], *(text for texts in extras.values() for text in texts)]
    optional = {text for extra in ("pandas", "polars") for text in extras[extra]}
    for text in [text for text in installed if text not in optional] + groups["dev"] + groups["build"]:
        requirement = Requirement(text)
        version = locked.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version):
            yield f"{text}, but locked is {version}: run make lock"
    # Fixed versions could not be installed beside other packages.
    for text in installed:
        operators = {specifier.operator for specifier in Requirement(text).specifier}
        if ">=" not in operators or not operators <= {">=", "<"}:
            yield f"{text}: no lower bound, or a version that is fixed"
    if f"cython=={locked.get('cython')}" not in project["build-system"]["requires"]:
        yield "the build takes another Cython than the one that is locked"
    entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    yield from (f"no hash: {entry.split()[0]}" for entry in entries if "--hash=sha256:" not in entry)
    if "://" in lock or "--index-url" in lock:
        yield "an address"


def test_the_lock_is_whole_and_in_step_with_the_project() -> None:
    found = list(faults(LOCK, PROJECT))
    assert not found, "\n".join(found)


def test_a_reader_needs_these_alone() -> None:
    """What a lake is read with in tests/layers/sink/test_reader.py is what the project installs."""
    needed = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    assert needed == {"pyarrow", "deltalake", "duckdb", "msgspec", "pyroaring", "pytz"}
    assert needed < set(READER)


def test_the_rule_of_the_lock() -> None:
    project = tomllib.loads("""
build-system.requires = ["cython==3"]
dependency-groups = {dev = ["pytest==9"], build = []}
[project]
dependencies = ["a-b>=1", "c==2"]
optional-dependencies = {feed = ["catchment[other]", "d<3"], pandas = ["pandas>=2"], polars = []}
""")
    lock = (
        "--index-url https://x\na-b==0.9 \\\n    --hash=sha256:1\nc==2\ncython==4 \\\n    --hash=sha256:2\n"
    )
    assert list(faults(lock, project)) == [
        "a-b>=1, but locked is 0.9: run make lock",
        "d<3, but locked is None: run make lock",
        "pytest==9, but locked is None: run make lock",
        "c==2: no lower bound, or a version that is fixed",
        "d<3: no lower bound, or a version that is fixed",
        "the build takes another Cython than the one that is locked",
        "no hash: c==2",
        "an address",
    ]
