"""A run remembers what is there, and nothing of what came and went: each has a table of another name, for years."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from catchment.feed.born import Births
from catchment.feed.planner import Limits, Planner
from catchment.feed.shadows import Shadows
from catchment.model.birth import Birth
from catchment.model.cut import Tick
from catchment.model.epoch import Manifest
from catchment.model.errors import Unsupported
from catchment.model.position import LogOffset
from catchment.model.shard import Copy
from catchment.model.table import ShardTable, TableId
from catchment.model.table_state import TableState
from catchment.schema.existence import Existence
from catchment.sink.port import Sink
from tests.layers.epoch.test_obey import SHARDS, manifest
from tests.layers.feed.test_sessions import feed

STANDING = manifest(TableState.FOLLOWING)
STAYS = TableId("shop", "stays")


def remembered(*ones: object) -> int:
    """How many things they hold in collections of their own."""
    held = (value for one in ones for value in vars(one).values())
    return sum(len(value) for value in held if isinstance(value, dict | set | list))


def born(number: int, *tables: TableId) -> Existence:
    birth = Birth(STANDING.cut.shards[SHARDS[0]].position, LogOffset("binlog.000001", number))
    return Existence(there=dict.fromkeys(tables, True), born=dict.fromkeys(tables, birth))


def lives(number: int) -> Iterator[Existence]:
    """What the epochs of some tables' lives did: one is made, and dropped; one is made, and its schema dropped."""
    mine, shadow = TableId("shop", f"t{number}"), TableId("shop", f"_t_{number}_gho")
    yield born(number, mine, shadow, STAYS)
    yield Existence()
    yield Existence(there={mine: False, shadow: False})
    yield born(number, mine, shadow)
    yield Existence(schemas_gone=frozenset({"shop"}))


def test_tables_that_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused once, so that it is copied, or not followed."""

    def entered(*_: object) -> Manifest | None:
        raise Unsupported("it has another key")

    monkeypatch.setattr(Shadows, "_entered", entered)
    shop = feed(tmp_path, "shop", ("a", "b"))
    births = Births(shop, {}, cast(Any, None), cast(Any, None))
    shadows = Shadows(shop, {}, cast(Sink, None), births)

    def pass_by(numbers: range) -> int:
        most = 0
        for number in numbers:
            for found in lives(number):
                told = dict.fromkeys(SHARDS, found)
                births.hear(told)
                shadows.hear(told)
                assert shadows.next(STANDING) is None
                for table in found.born:
                    for shard, birth in births.known(table, {}).items():
                        births._give_up(ShardTable(shard, table), birth, "it has rows of XA transactions")
                most = max(most, remembered(births, shadows))
        return most

    few = pass_by(range(5))
    assert few > len(SHARDS), "tables that are there are remembered"
    assert pass_by(range(5, 200)) <= few


def test_tables_that_are_copied_and_leave() -> None:
    planner = Planner({}, Limits(0.5, 1000, 1, 1 << 20))

    def pass_by(numbers: range) -> None:
        for number in numbers:
            copies = (Copy(TableId("shop", f"t{number}")),)
            states = {shard: replace(state, copies=copies) for shard, state in STANDING.cut.shards.items()}
            cut = replace(STANDING.cut, shards=states)
            planner.groups(cut, (), Tick(number, 0, 0, {}))
            for shard in SHARDS:
                planner._pace(ShardTable(shard, copies[0].table))
            planner.take_in(cut, cut, ())

    pass_by(range(5))
    few = remembered(planner)
    pass_by(range(5, 200))
    assert remembered(planner) <= few
