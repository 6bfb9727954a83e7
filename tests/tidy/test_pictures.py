"""What is drawn into the docs from the code is drawn from the code as it is."""

from collections.abc import Callable
from pathlib import Path

from tests.tidy import floors, table_states
from tests.tidy.sources import ROOT

PICTURES = [
    (floors.PAGE, floors.page, "tests.tidy.floors"),
    (table_states.PAGE, table_states.page, "tests.tidy.table_states"),
]


def stale(pictures: list[tuple[Path, Callable[[], str], str]]) -> list[str]:
    """The pages whose picture is another one now, each with the command that draws it again."""
    return [
        f"{page.relative_to(ROOT)}: run python -m {module}"
        for page, drawn, module in pictures
        if page.read_text() != drawn()
    ]


def test_the_pictures_in_the_docs_are_those_of_the_code() -> None:
    found = stale(PICTURES)
    assert not found, "\n".join(found)


def test_a_picture_that_is_not_of_the_code_is_found() -> None:
    assert stale([(floors.PAGE, lambda: f"{floors.page()}.", "tests.tidy.floors")])
