"""What a feed file says of DDL on some tables."""

from pydantic import Field, field_validator

from catchment.config.section import Section
from catchment.config.table_patterns import check_rules, takes
from catchment.model.table import TableId
from catchment.model.treatment import SchemaChange


class DdlConfig(Section):
    """What the feed does about DDL on some tables, where that is not `schema_change` of the feed."""

    match: str = Field(
        description="Which: a name `shop.orders`, a glob `shop.*`, or `/regex/` over `schema.table`. Of those that "
        "take a table the first one counts."
    )
    schema_change: SchemaChange = Field(description="`evolve`, `freeze` or `fail`, as for the whole feed.")

    @field_validator("match")
    @classmethod
    def _takes_tables(cls, match: str) -> str:
        return check_rules((match,))[0]

    def takes(self, table: TableId) -> bool:
        """Whether it is for a table."""
        return takes((self.match,), table)
