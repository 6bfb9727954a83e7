"""Records: whatever a chain of epochs changes, each of them comes back from its record and the whole one before it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.model import records
from catchment.model.cut import Cut
from catchment.model.definition import DefinedColumn, Definition
from catchment.model.differences import changed, merged, replaced, restored
from catchment.model.epoch import (
    Commit,
    DataFile,
    LakeColumn,
    Manifest,
    Outside,
    Part,
    TableDelta,
    TableShape,
)
from catchment.model.epoch_number import epoch_number
from catchment.model.position import (
    Gtid,
    GtidList,
    LastEvent,
    LogOffset,
    Position,
    Prepared,
    Resets,
    Server,
    Xid,
)
from catchment.model.records import (
    Base,
    Link,
    OfLater,
    Unreadable,
    base_of,
    digest,
    encoded,
    link_of,
    plan_of,
    value_of,
    whole,
)
from catchment.model.shard import Copy, ShardState
from catchment.model.stale import Stale
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.model.version import RECORD_VERSION
from tests.world import records as made
from tests.world.records import large

SHARDS = ("-40", "40-80", "80-")
TABLES = (TableId("shop", "orders"), TableId("shop", "items"))
BIGINT = ColumnType(Kind.BIGINT)

offsets = st.builds(LogOffset, st.sampled_from(("binlog.000001", "binlog.000002")), st.integers(4, 6))
resets = st.none() | st.builds(Resets, st.integers(0, 1), st.integers(1, 2), st.integers(1, 9))
prepared = st.lists(
    st.builds(
        Prepared, st.just(Xid(1, b"\xff", b"")), offsets, offsets, st.integers(1, 2), st.none() | offsets
    ),
    max_size=1,
).map(tuple)
positions = st.builds(
    Position,
    offsets,
    st.integers(1, 2),
    st.just(Server(1, "db", 3306)),
    st.just(GtidList((Gtid(0, 1, 5),))),
    resets,
    prepared,
    st.none() | st.builds(LastEvent, st.integers(19, 20), st.integers(0, 1)),
)
bounds = st.none() | st.tuples(st.integers(0, 3))
shapes = st.lists(st.sampled_from(("id", "a", "b")), min_size=1, max_size=3, unique=True).map(
    lambda names: tuple(
        TableShape(table, tuple(LakeColumn(Column(n, BIGINT), n) for n in names), (names[0],))
        for table in TABLES
    )
)
deltas = st.sampled_from(TABLES).map(
    lambda table: TableDelta(TableShape(table, (), ()), (DataFile("x", 1, 1, Part.BASE, "{}"),), 1)
)
definitions = st.builds(
    Definition,
    st.sampled_from(TABLES),
    st.just((DefinedColumn("id", "bigint"),)),
    st.just(("id",)),
    st.just("utf8"),
)


@st.composite
def states_of(draw: st.DrawFn, shapes: tuple[TableShape, ...]) -> ShardState:
    """Any state of a shard that has some of the tables."""
    copies = [
        Copy(shape.table, draw(bounds), done=draw(st.booleans()))
        for shape in shapes
        if draw(st.integers(0, 3))
    ]
    known = draw(st.lists(definitions, max_size=2, unique_by=lambda one: one.table))
    return ShardState(draw(positions), draw(st.none() | offsets), tuple(copies), tuple(known))


@st.composite
def manifests(draw: st.DrawFn, epoch: int) -> Manifest:
    """Any manifest of an epoch: of other shards and tables than the one before, too."""
    shards = draw(st.lists(st.sampled_from(SHARDS), min_size=1, unique=True))
    chosen = draw(shapes)[: draw(st.integers(1, 2))]
    states = {shard: draw(states_of(chosen)) for shard in shards}
    return Manifest(
        feed="shop",
        previous=epoch_number(epoch - 1),
        window_us=draw(st.integers(0, 9)),
        cut=Cut(epoch_number(epoch), draw(st.integers(0, 9)), states),
        shapes=chosen,
        deltas=tuple(draw(st.lists(deltas, max_size=2))),
        changes=draw(st.integers(0, 2)),
        log_bytes=draw(st.integers(0, 2)),
        chunk_bytes=draw(st.integers(0, 2)),
        outside=tuple(draw(st.lists(st.just(Outside(TABLES[0], 5)), max_size=1))),
    )


@st.composite
def chains(draw: st.DrawFn) -> list[Manifest]:
    """Epochs in a row: each is any one, or the one before with a few things changed."""
    chain = [draw(manifests(1))]
    for epoch in range(2, draw(st.integers(2, 8))):
        other = draw(manifests(epoch))
        if draw(st.integers(0, 3)) and other.cut.shards.keys() == chain[-1].cut.shards.keys():
            chain.append(other)
            continue
        last = chain[-1]
        shard = draw(st.sampled_from(sorted(last.cut.shards)))
        state = last.cut.shards[shard]
        copies = tuple(
            replace(one, rows=one.rows + draw(st.integers(0, 1)), done=draw(st.booleans()))
            for one in state.copies
        )
        state = replace(state, position=draw(positions), copies=copies)
        moved = made.with_shards(last.repeated(epoch_number(epoch)), {**last.cut.shards, shard: state})
        chain.append(moved if draw(st.booleans()) else other)
    return chain


def written(chain: list[Manifest]) -> list[bytes]:
    base: Base[Manifest] | None = None
    found = []
    for manifest in chain:
        record, base = encoded(manifest, base)
        found.append(record)
    return found


def read_again(written: list[bytes]) -> list[Manifest]:
    """Each from its own record and the one that it names, as who has them by their epochs."""
    wholes: dict[int, bytes] = {}
    found = []
    for record in written:
        link = link_of(record)
        base = None if link is None else base_of(wholes[link.epoch], Manifest)
        found.append(value_of(record, base, Manifest))
        if link is None:
            wholes[found[-1].epoch] = record
    return found


@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.wide)])
def test_every_chain_comes_back_and_by_its_own_base_alone(examples: int) -> None:
    shares = st.sampled_from((0, 1, 4))
    settings(max_examples=examples)(given(chains(), shares)(must_come_back))()


def must_come_back(chain: list[Manifest], share: int) -> None:
    """With a share of 0 everything that can be is a change, however large it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SHARE_MAX", share)
        stored = written(chain)
    assert read_again(stored) == chain
    must_need_its_own_base(stored, chain)


def must_need_its_own_base(stored: list[bytes], chain: list[Manifest]) -> None:
    for record in stored:
        link = link_of(record)
        if link is None:
            continue
        with pytest.raises(Unreadable, match="whose record is not there"):
            value_of(record, None, Manifest)
        for other in chain:
            base = base_of(whole(replace(other, changes=99)), Manifest)
            with pytest.raises(Unreadable, match="whose record is another one"):
                value_of(record, base, Manifest)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
)
def test_entries(before: dict[str, int], after: dict[str, int]) -> None:
    assert merged(before, changed(before, after)) == after
    assert changed(after, after) == {}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2))))
def test_places(pairs: list[tuple[int, int]]) -> None:
    before, after = tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
    assert restored(before, replaced(before, after)) == after
    assert replaced(after, after) == {}


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)), min_size=1))
def test_commits_come_back(versions: list[dict[str, int]]) -> None:
    base: Base[Commit] | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SHARE_MAX", 0)
        for number, of_tables in enumerate(versions):
            commit = Commit(number, "d", number, of_tables)
            before = base
            record, base = encoded(commit, base)
            assert value_of(record, before, Commit) == commit


def test_what_has_not_changed_is_not_written_again() -> None:
    record, base = encoded(large(1), None)
    change, after = encoded(large(2), base)
    assert len(change) < 1200 < len(record) / 4
    assert link_of(change) == Link(epoch_number(1), digest(record))
    assert (after.digest, after.used) == (base.digest, 1)
    assert json.loads(change)["version"] == json.loads(record)["version"] == RECORD_VERSION


def test_a_shard_at_rest_writes_when_it_was_asked_and_no_more() -> None:
    before, after = large(1), large(2)
    state = before.cut.shards["-80"]
    asked = replace(state, position=replace(state.position, resets=Resets(0, 1, 2)))
    after = made.with_shards(after, {"-80": asked})
    _, base = encoded(before, None)
    change, _ = encoded(after, base)
    assert json.loads(change)["resets"] == {"-80": {"count": 0, "started": 1, "asked": 2}}
    assert "shards" not in json.loads(change)
    assert value_of(change, base, Manifest) == after


def test_a_shard_whose_position_moved_writes_no_copies() -> None:
    _, base = encoded(large(1), None)
    change, _ = encoded(large(2), base)
    assert json.loads(change)["shards"]["-80"].keys() == {"position", "sealed"}
    state = large(2).cut.shards["-80"]
    copies = (*state.copies[:7], replace(state.copies[7], rows=9), *state.copies[8:])
    after = made.with_shards(large(2), {"-80": replace(state, sealed=None, copies=copies)})
    change, _ = encoded(after, base)
    found = json.loads(change)["shards"]["-80"]
    assert (found["sealed"], found["copies"].keys()) == (None, {"7"})
    assert value_of(change, base, Manifest) == after


def test_a_whole_record_every_so_many() -> None:
    base: Base[Manifest] | None = None
    wholes = []
    for turn in range(1, 110):
        record, base = encoded(large(turn), base)
        if link_of(record) is None:
            wholes.append(turn)
    assert wholes == [1, 52, 103]


def test_records_without_a_version() -> None:
    plan, commit = made.plan(1), made.commit(1)
    assert plan_of(msgspec.json.encode(plan)) == plan == plan_of(whole(plan))
    assert value_of(msgspec.json.encode(commit), None, Commit) == commit


@pytest.mark.parametrize(
    "record", [whole(made.manifest(1)), encoded(large(2), encoded(large(1), None)[1])[0]]
)
def test_a_record_of_a_later_version_is_refused(record: bytes) -> None:
    later = record.replace(b'"version":%d' % RECORD_VERSION, b'"version":%d' % (RECORD_VERSION + 1))
    assert later != record
    for look in (link_of, plan_of, lambda r: base_of(r, Manifest), lambda r: value_of(r, None, Manifest)):
        with pytest.raises(
            OfLater, match=rf"version {RECORD_VERSION + 1}, of a later Catchment.*docs/upgrade\.md"
        ):
            look(later)


def test_a_record_of_version_3_knows_no_stale_tables() -> None:
    manifest = made.manifest(1)
    now = whole(manifest)
    then = now.replace(b'"version":%d' % RECORD_VERSION, b'"version":3').replace(b',"stale":[]', b"")
    assert len(then) < len(now)
    assert value_of(then, None, Manifest) == manifest


def test_stale_tables_are_written_when_they_change() -> None:
    stale = Stale(large(1).shapes[0].table, 7, 8, ("-80",), "it was truncated")
    first, same, other = (
        replace(large(number), stale=of)
        for number, of in ((1, (stale,)), (2, (stale,)), (3, (replace(stale, epoch=9),)))
    )
    _, base = encoded(first, None)
    for manifest, is_told in ((same, False), (other, True), (large(4), True)):
        record, _ = encoded(manifest, base)
        assert (b"stale" in record) == is_told
        assert value_of(record, base, Manifest) == manifest


def _copies(entries: dict[str, Any]) -> dict[str, Any]:
    return {"shards": {"-80": {"copies": entries}}}


def test_damage_is_told() -> None:
    _, base = encoded(large(1), None)
    change, _ = encoded(large(2), base)
    for harm, said in (
        (_copies({"40": {"table": {"schema": "shop", "name": "t0"}}}), "entry 40 of 40"),
        (_copies({"0": {"table": {"schema": "shop", "name": "x"}}}), "shop.x, which it does not"),
        (_copies({"0": {"table": {"schema": "shop", "name": "t1"}}}), "more than one copy of shop.t1"),
        ({"resets": {"80-": None}}, "shards that its base does not have: 80-"),
        ({"shards": {"80-": {}}}, "shards that its base does not have: 80-"),
        ({"epoch": "x"}, "cannot be read"),
    ):
        with pytest.raises(Unreadable, match=said):
            value_of(json.dumps({**json.loads(change), **harm}).encode(), base, Manifest)
    with pytest.raises(Unreadable, match="is to be whole"):
        base_of(change, Manifest)
    with pytest.raises(Unreadable, match="cannot be read"):
        link_of(b"{")
