"""What a feed file says of DDL on some tables."""

from pydantic import Field

from catchment.config.table_rule import TableRule
from catchment.model.treatment import SchemaChange


class DdlConfig(TableRule):
    """What the feed does about DDL on some tables, where that is not `schema_change` of the feed."""

    schema_change: SchemaChange = Field(description="`evolve`, `freeze` or `fail`, as for the whole feed.")
