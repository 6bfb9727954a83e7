"""The lake, as the feed file describes it."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from catchment.config.section import Section
from catchment.config.units import Seconds, Unit, Window
from catchment.config.values import IndexPath, LakePath, Name
from catchment.model.location import Location
from catchment.model.units import write_window

SETTLE_SECONDS_MAX = 3600.0
KEEP_SECONDS_MIN = 10.0
KEEP_SECONDS_MAX = 86_400.0  # a lake keeps the log of its tables a day longer

# Readers take a lake's path for a URL: they decode the one, and have a slash for the other (seen).
_TAKEN_FOR_A_URL = re.compile(r"%[0-9A-Fa-f]{2}|\\")

Vectors = Annotated[bool | Literal["trino"], Unit("true, false or `trino`", lambda value: str(value).lower())]


class SinkConfig(Section):
    """The lake."""

    kind: Name | None = Field(default=None, description="Name of the sink; without one, the lake.")
    path: LakePath = Field(
        description="Where the lake lies, with one table for each source table: a directory, local or mounted, or "
        "`s3://BUCKET/PREFIX`, `gs://...`, `az://...`. Credentials of an object store come from the environment."
    )
    settle: Seconds = Field(
        default=10.0,
        ge=0,
        le=SETTLE_SECONDS_MAX,
        description="How long changes wait, about, until the tables that every program reads have them; `0s`: an "
        "epoch. `catchment.read` has them at once.",
    )
    keep: Seconds = Field(
        default=3600.0,
        ge=KEEP_SECONDS_MIN,
        le=KEEP_SECONDS_MAX,
        description="How long files that others replaced stay, at least, for readers of older epochs: each one can be "
        "read; a day at most. Counted in whole hours, rounded up: `10min` is an hour.",
    )
    keep_hourly: Window = Field(
        default=0.0,
        ge=0,
        description="How long one epoch of each hour stays beyond `keep`, the last one that was settled, for "
        "[readers of the past](reading.md#further-back); `0s`: none does.",
    )
    keep_daily: Window = Field(
        default=0.0,
        ge=0,
        description="How long one epoch of each day (in UTC) stays beyond `keep` and `keep_hourly`, the last one that "
        "was settled; `0s`: none does.",
    )
    vectors: Vectors = Field(
        default=True,
        description="Dead rows are named in deletion vectors, which many readers know. With `trino` they lie where "
        "[Trino](reading.md#trino) reads them, too. With `false` a settle writes files with dead rows anew, for "
        "readers that know no vectors. Settle less often then.",
    )
    changes: bool = Field(
        default=False,
        description="Tables say row by row what each version changed, for `catchment.changes` and other readers of "
        "change data. It takes room and time as the changes do.",
    )

    index: IndexPath = Field(
        default=None,
        description="A directory of the machine that settles, for [the index](operations.md#the-index), or `off`. "
        "Without one it is `$XDG_CACHE_HOME/catchment/index`, or `~/.cache/catchment/index`.",
    )

    @model_validator(mode="after")
    def _each_reaches_further(self) -> Self:
        reached, by = self.keep, "keep"
        for name, window in (("keep_hourly", self.keep_hourly), ("keep_daily", self.keep_daily)):
            if window and window <= reached:
                raise ValueError(
                    f"{name} must be longer than {by} ({write_window(window)} and {write_window(reached)} are given): "
                    "it says how long less of the past stays; leave it out, or give it more"
                )
            reached, by = (window, name) if window else (reached, by)
        return self

    @field_validator("path")
    @classmethod
    def _can_be_opened(cls, path: Location) -> Location:
        if (found := _TAKEN_FOR_A_URL.search(str(path))) is not None:
            raise ValueError(
                f"a lake at {path} cannot be opened, because of {found[0]} in it; choose another directory"
            )
        return path
