"""What a run and its upkeep remember of a lake is of the tables and copies that are there, not of those before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from catchment.model.epoch import Part, TableShape
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.lake import DeltaLake
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS, delta, write

# The epochs of the readers' window, which is an hour here; and two numbers of each directory of a plain table, which
# stays when its table leaves.
BOUND_ELSEWHERE = {"Cleaner.standing", "Versions._known"}


def copy(feeder: Feeder, number: int) -> TableShape:
    """An epoch with which a copy of a table begins: of the same one, as a swap of gh-ost makes it, and now and then of
    one of another name."""
    feeder.epoch += 1
    table = replace(ORDERS.table, name=f"orders{number // 4}")
    shape = replace(ORDERS, table=table, generation=feeder.epoch)
    rows = [("s/0", feeder.epoch, False, (1, "a"))]
    feeder.commit(
        (shape,), delta(shape, write(feeder.root, shape, Part.CHANGES, f"{feeder.epoch}-a-0", rows))
    )
    return shape


def counts(*ones: object) -> dict[str, int]:
    """How much the collections hold of all objects that these have, by class and name. A log is one thing."""
    return {name: len(value) for one in ones for name, value in _collections(one)}


def _collections(one: object) -> Iterator[tuple[str, Any]]:
    for name, value in vars(one).items():
        if isinstance(value, dict | set | list):
            yield f"{type(one).__name__}.{name}", value
        elif _is_of_sink(value):
            yield from _collections(value)


def _is_of_sink(value: object) -> bool:
    ours = type(value).__module__.startswith("catchment.sink") and hasattr(value, "__dict__")
    return ours and not isinstance(value, DeltaLog)


def test_copies_that_follow_one_another(tmp_path: Path) -> None:
    feeder, keeper = Feeder(tmp_path), Keeper(str(tmp_path), FEED)
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    lake = DeltaLake(order, 1.0)

    def pass_by(numbers: range) -> dict[str, int]:
        for number in numbers:
            shape = copy(feeder, number)
            assert not lake.has_replaced(shape)
            keeper.carry_out(order)
            assert lake.has_replaced(shape)
        return counts(feeder.sink, keeper, lake)

    few = pass_by(range(6))
    many = pass_by(range(6, 20))
    assert few["Logs._known"]
    grown = {name: (few[name], many[name]) for name in many if many[name] > few.get(name, 0)}
    assert grown.keys() <= BOUND_ELSEWHERE, grown
