"""What clients of the simulator ask for, and what that makes of a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catchment.serve.server import stream_pb2 as pb
from tests.world.sim.history import Row

Values = dict[str, int]
# An ALTER of the simulator's clients adds the next one.
COLUMNS = ("id", "v", *(f"c{number}" for number in range(2, 12)))


@dataclass(frozen=True)
class View:
    """Which of a table's rows a client receives. `least`: rows with a smaller `v` are left out, and so are all further
    columns; None: all rows with all columns."""

    least: int | None = None

    def of(self, row: Row | None) -> Values | None:
        """A row by the names of its columns, without those that are NULL."""
        if row is None:
            return None
        values = {name: value for name, value in zip(COLUMNS, row, strict=False) if value is not None}
        if self.least is None:
            return values
        return {name: values[name] for name in ("id", "v")} if values["v"] >= self.least else None


@dataclass(frozen=True)
class Wanted:
    """Rules of a request, and the tables that they take."""

    views: Mapping[str, View]
    rules: Sequence[pb.Rule] = field(default_factory=tuple)


_LEAST = 500
_SELECT = f"select id, v from t where v >= {_LEAST}"
ALL = Wanted({"t": View(), "u": View()})
ONE = Wanted({"t": View()}, (pb.Rule(match="t"),))
OTHER = Wanted({"u": View()}, (pb.Rule(match="u"),))
SELECTED = Wanted({"t": View(_LEAST), "u": View()}, (pb.Rule(match="t", filter=_SELECT), pb.Rule(match="u")))
