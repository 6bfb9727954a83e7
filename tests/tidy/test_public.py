"""What users import from `catchment` itself stays what it is, whatever else of the package is imported."""

import subprocess
import sys

import catchment
from tests.tidy.floors import PACKAGE

_ALL = """
import importlib
import catchment
for name in {modules!r}:
    importlib.import_module(name)
print([name for name in catchment.__all__ if name[0].islower() and not callable(getattr(catchment, name))])
"""


def test_no_folder_has_the_name_of_a_function() -> None:
    """Importing a folder sets it as an attribute of the package, in the place of a function of that name."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert folders & set(catchment.__all__) == set()


def test_functions_are_there_when_everything_is_imported() -> None:
    modules = ["catchment.serve.spark_source", "catchment.feed.runner", "catchment.cli.main"]
    done = subprocess.run(
        [sys.executable, "-c", _ALL.format(modules=modules)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
