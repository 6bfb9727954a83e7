"""What a feed file says of some tables, named by a pattern."""

from pydantic import Field, field_validator

from catchment.config.section import Section
from catchment.config.table_patterns import check_rules, takes
from catchment.model.table import TableId


class TableRule(Section):
    """A rule for the tables that its pattern takes."""

    match: str = Field(
        description="Which: a [pattern](patterns.md), as `shop.orders` or `shop.*`. Of those that take a table the "
        "first one counts."
    )

    @field_validator("match")
    @classmethod
    def _takes_tables(cls, match: str) -> str:
        return check_rules((match,))[0]

    def takes(self, table: TableId) -> bool:
        """Whether it is for a table."""
        return takes((self.match,), table)
