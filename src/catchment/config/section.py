"""What all mappings of a feed file have in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the feed file: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
