"""docs/feed-reference.md and docs/serve-reference.md say what the models say."""

from pathlib import Path

from catchment.config.reference import reference, serve_reference

DOCS = Path(__file__).parents[3] / "docs"
RUN = "run: python -m catchment.config.reference"


def test_the_pages_are_current() -> None:
    assert (DOCS / "feed-reference.md").read_text() == reference(), RUN
    assert (DOCS / "serve-reference.md").read_text() == serve_reference(), RUN


def test_every_default_with_a_unit_is_written_in_it() -> None:
    assert "| `copy.log_budget` | size | `64MB` |" in reference()
    assert "| `sink.settle` | duration | `10s` |" in reference()
    assert "| `state` | text | `<name>.state.db` |" in reference()
    assert "| `buffer` | size | `64MB` |" in serve_reference()
