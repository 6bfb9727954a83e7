"""What a feed file says of the rows that a lake keeps."""

from pydantic import Field, field_validator

from catchment.config.section import Section
from catchment.config.table_patterns import check_rules, takes
from catchment.model.table import TableId
from catchment.model.treatment import Mode


class ModeConfig(Section):
    """What the lake keeps of some tables' rows."""

    match: str = Field(
        description="Which: a name `shop.orders`, a glob `shop.*`, or `/regex/` over `schema.table`. Of those that "
        "take a table the first one counts."
    )
    mode: Mode = Field(
        description="`mirror`, the rows that the source has; `soft_delete`, also those that it had, with `_deleted`; "
        "`append`, every change of an epoch, with `_deleted`; `history`, every version of a row, and when it was valid."
    )

    @field_validator("match")
    @classmethod
    def _takes_tables(cls, match: str) -> str:
        return check_rules((match,))[0]

    def takes(self, table: TableId) -> bool:
        """Whether it is for a table."""
        return takes((self.match,), table)
