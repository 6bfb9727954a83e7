"""Tuples of values of tables: they keep what is found of them, and are written and read as any tuple."""

import pickle

import msgspec
import pytest
from msgspec.structs import replace

from catchment.model.column_rule import ColumnRule, Masking
from catchment.model.definition import DefinedColumn, Definition
from catchment.model.emptied import Emptied
from catchment.model.epoch import LakeColumn, Shapes
from catchment.model.fill import Fill
from catchment.model.of_tables import Lazily, OfTables
from catchment.model.renewal import Renewal
from catchment.model.shard import Copies, Copy, Definitions, ShardState
from catchment.model.table import Column, ColumnComment, ColumnType, Comments, Kind, TableId
from catchment.model.treatment import Mode
from catchment.model.widened import Widened
from tests.world import records

TABLES = [TableId("shop", name) for name in ("a", "b", "c")]
SHAPE = records.manifest(1).shapes[0]


def shapes() -> Shapes:
    return Shapes(replace(SHAPE, table=table) for table in TABLES)


def test_the_same_object_where_nothing_differs() -> None:
    known = shapes()
    other = replace(known[1], key=())
    assert known.replaced({TABLES[0]: replace(SHAPE, table=TABLES[0]), TableId("shop", "z"): None}) is known
    assert known.replaced({TABLES[1]: other}) == (known[0], other, known[2])
    assert known.replaced({TABLES[1]: None}) == (known[0], known[2])


def test_a_table_comes_once() -> None:
    with pytest.raises(ValueError, match=r"more than one shape of shop\.a"):
        Shapes([*shapes(), shapes()[0]])


def test_they_are_the_same_in_another_process() -> None:
    column = LakeColumn(
        Column("ü", ColumnType(Kind.ENUM, charset="utf8mb4", labels=("a", "ß"))), "ü_2", False, True, ("-80",)
    )
    whole = replace(
        SHAPE,
        columns=(*SHAPE.columns, column),
        rules=(ColumnRule("ü", masking=Masking.HMAC),),
        mode=Mode.HISTORY,
        comments=Comments("of it", (ColumnComment("ü", "of that"),)),
        generation=1 << 63 - 1,
        fills=(Fill("ü_2", ("-80",), 7, "00ff"),),
        emptied=(Emptied(("-80",), 7),),
        widened=(Widened("id", ColumnType(Kind.INT), ("-80",)),),
        place_of=TABLES[0],
        renews=Renewal(7),
    )
    told = Shapes([whole, *shapes()])
    found = pickle.loads(pickle.dumps(told))
    assert (found, type(found)) == (told, Shapes)
    column_there = DefinedColumn("ü", "enum('a','ß')", "utf8mb4", True)
    defined = Definitions([Definition(TABLES[0], (column_there,), ("ü",), "latin1")])
    assert pickle.loads(pickle.dumps(defined)) == defined


def test_a_process_makes_them_once_for_all_tasks_that_bring_them() -> None:
    first, second = (pickle.loads(pickle.dumps(shapes())) for _ in range(2))
    assert first is second
    assert first.packed == shapes().packed


def test_copies_know_what_is_left() -> None:
    copies = Copies([Copy(TABLES[0], done=True), Copy(TABLES[1]), Copy(TABLES[2], paused=True)])
    state = replace(records.manifest(1).cut.shards["-80"], copies=copies)
    assert list(state.copying) == TABLES[1:]
    assert not state.idle
    assert replace(state, copies=(copies[0], copies[2])).idle
    assert state.unfinished.copies == copies[1:]
    assert replace(state, copies=copies[:1]).copied
    assert replace(state, copies=copies[:1]).unfinished.copies == ()
    tables = frozenset(TABLES)
    assert copies.are_of(tables)
    assert not copies.are_of(frozenset(TABLES[:2]))
    assert pickle.loads(pickle.dumps(copies)) == copies


def test_a_record_says_of_them_what_it_says_of_tuples() -> None:
    """Records of earlier versions, and their digests, stay as they are."""
    known = records.manifest(1)
    plain = msgspec.to_builtins(known)
    assert isinstance(known.shapes, OfTables)
    assert msgspec.json.decode(msgspec.json.encode(known)) == msgspec.json.decode(msgspec.json.encode(plain))
    position = known.cut.shards["-80"].position
    assert b"copies" not in msgspec.json.encode(ShardState(position))


def test_what_nobody_asks_for_is_not_found() -> None:
    asked: list[TableId] = []
    found = Lazily(dict.fromkeys(TABLES), lambda table: asked.append(table) or len(asked))  # type: ignore[func-returns-value]
    assert TABLES[0] in found
    assert (found[TABLES[1]], found[TABLES[1]], found.get(TableId("shop", "z"))) == (1, 1, None)
    assert asked == [TABLES[1]]
    assert len(found) == len(list(found)) == len(TABLES)
