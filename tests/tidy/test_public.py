"""What users import from `catchment` itself is there, and stays what it is whatever else of the package is imported."""

import catchment
from tests.tidy.sources import PACKAGE


def test_every_name_is_there_and_no_folder_takes_its_place() -> None:
    """The import of a folder sets an attribute of the package, in the place of a function of that name."""
    assert {path.stem for path in PACKAGE.iterdir()} & set(catchment.__all__) == set()
    functions = {name: getattr(catchment, name) for name in catchment.__all__ if name[0].islower()}
    assert [name for name, function in functions.items() if not callable(function)] == []
