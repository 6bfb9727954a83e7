"""A table of a shard as it stands now, for whoever chooses what to do to it."""

import re
from dataclasses import dataclass

from catchment.demo.server import PrivateServer

_RANGE = re.compile(
    r"PARTITION `?(\w+)`? VALUES LESS THAN (?:\((\d+)\)|MAXVALUE|\(MAXVALUE\))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Sight:
    """A table: its definition as SHOW CREATE TABLE has it, and the types of its columns by their names."""

    name: str
    made: str
    columns: dict[str, str]
    key: tuple[str, ...]

    @property
    def added(self) -> list[str]:
        """Columns that came by DDL: no writer needs them."""
        return [name for name in self.columns if re.fullmatch(r"x\d+", name)]

    @property
    def indexes(self) -> list[str]:
        """Indexes that came by DDL."""
        return re.findall(r"KEY `(i\d+)`", self.made)

    @property
    def ranges(self) -> list[tuple[str, int | None]]:
        """Partitions by range, with their bounds; None is MAXVALUE."""
        return [(name, int(bound) if bound else None) for name, bound in _RANGE.findall(self.made)]

    @property
    def parted(self) -> bool:
        """Whether it has partitions."""
        return "PARTITION BY" in self.made.upper()

    @property
    def has_old_key(self) -> bool:
        """Whether a unique key stands for the primary key of before."""
        return "`u_id`" in self.made


def see(server: PrivateServer, schema: str, table: str) -> Sight | None:
    """A table as it stands; None where there is none."""
    if not server.sql(f"SHOW TABLES FROM {schema} LIKE '{table.replace('_', chr(92) + '_')}'"):
        return None
    made = str(server.sql(f"SHOW CREATE TABLE {schema}.{table}")[0][1])
    rows = server.sql(f"SHOW COLUMNS FROM {schema}.{table}")
    columns = {str(row[0]): str(row[1]) for row in rows}
    return Sight(table, made, columns, tuple(str(row[0]) for row in rows if row[3] == "PRI"))
