"""What a feed file says of the comparisons that a run makes by itself, beside all else that it does."""

from pydantic import Field, field_validator

from catchment.config.section import Section
from catchment.config.table_patterns import check_rules, takes
from catchment.config.units import Percent, Seconds
from catchment.model.sample import EVERYTHING, Sample
from catchment.model.table import TableId

EVERY_SECONDS_MIN = 1.0


class VerifyConfig(Section):
    """Comparisons of source and lake in the background of a run."""

    every: Seconds | None = Field(
        default=None,
        ge=EVERY_SECONDS_MIN,
        description="Time from the beginning of one comparison to that of the next; without it none is made.",
    )
    budget: Percent = Field(
        default=20.0,
        description="Share of the time in which one process of the run compares; `100%` is without a pause. "
        "`copy.throttle` holds it up besides.",
    )
    tables: tuple[str, ...] = Field(
        default=("*.*",),
        description="Which of the tables of the feed: [patterns](patterns.md), as under `tables`.",
    )
    sample: Percent | None = Field(
        default=None,
        description="Only this share of all parts of the tables, chosen at random, others each time.",
    )
    repair: bool = Field(
        default=False,
        description="[Mend](guarantee.md#when-verify-finds-a-difference) what differs.",
    )

    @field_validator("tables")
    @classmethod
    def _takes_tables(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        return check_rules(rules)

    def takes(self, table: TableId) -> bool:
        """Whether a table of the feed is compared."""
        return takes(self.tables, table)

    def sample_at(self, began_us: int) -> Sample:
        """The sample of the comparison that began then, the same however often it is interrupted."""
        return EVERYTHING if self.sample is None else Sample(self.sample, began_us)
