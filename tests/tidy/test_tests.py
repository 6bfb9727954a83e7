"""Where tests are: `layers` has the folders of the source; only the three parts and these rules stand at the top."""

from tests.tidy.floors import PACKAGE, ROOT

TESTS = ROOT / "tests"


def folders(of: str) -> set[str]:
    return {path.name for path in (TESTS / of).iterdir() if path.is_dir() and path.name != "__pycache__"}


def test_the_parts() -> None:
    assert folders("") == {"layers", "promises", "world", "tidy"}
    assert {path.name for path in TESTS.glob("*.py")} == {"__init__.py", "conftest.py"}


def test_a_folder_of_layers_is_a_folder_of_the_source() -> None:
    assert {folder for folder in folders("layers") if not (PACKAGE / folder).is_dir()} == set()
