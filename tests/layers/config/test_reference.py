"""docs/feed-reference.md says what the models say."""

from pathlib import Path

from catchment.config.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "feed-reference.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == reference(), "run: python -m catchment.config.reference"


def test_every_default_with_a_unit_is_written_in_it() -> None:
    assert "| `copy.log_budget` | size | `64MB` |" in reference()
    assert "| `sink.settle` | duration | `10s` |" in reference()
    assert "| `state` | text | `<name>.state.db` |" in reference()
