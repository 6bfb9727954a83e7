"""The page of errors has all of them, as the code has them."""

from catchment.cli.errors_reference import listed, reference
from catchment.model.errors import Scope
from tests.layers.config.test_reference import DOCS


def test_the_page_is_that_of_the_code() -> None:
    assert (DOCS / "errors.md").read_text() == reference(), "run: python -m catchment.cli.errors_reference"


def test_each_scope_has_an_error_and_each_error_a_meaning() -> None:
    kinds = list(listed())
    assert {kind.scope for kind in kinds} == set(Scope)
    assert all(kind.__doc__ for kind in kinds)
