"""What a feed file says of the rows that a lake keeps."""

from pydantic import Field

from catchment.config.table_rule import TableRule
from catchment.model.treatment import Mode


class ModeConfig(TableRule):
    """What the lake keeps of some tables' rows."""

    mode: Mode = Field(
        description="`mirror`, the rows that the source has; `soft_delete`, also those that it had, with `_deleted`; "
        "`append`, every change of an epoch, with `_deleted`; `history`, every version of a row, and when it was valid."
    )
