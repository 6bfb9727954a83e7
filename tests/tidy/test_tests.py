"""Where tests are: in `layers`, which has the folders of the source, and in the other parts of tests/."""

from tests.tidy.sources import PACKAGE, ROOT

TESTS = ROOT / "tests"


def folders(of: str) -> set[str]:
    return {path.name for path in (TESTS / of).iterdir() if path.is_dir() and path.name != "__pycache__"}


def test_every_test_is_in_a_folder_for_it() -> None:
    assert folders("") == {"layers", "promises", "world", "mistakes", "suite", "tidy"}
    assert list(TESTS.glob("test_*.py")) == []
    assert {folder for folder in folders("layers") if not (PACKAGE / folder).is_dir()} == set()
