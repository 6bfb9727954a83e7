"""Records: whatever a chain of epochs changes, each of them comes back from its record and the whole one before it."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.model import records
from catchment.model.chunk import Progress
from catchment.model.definition import DefinedColumn, Definition
from catchment.model.epoch import (
    Commit,
    DataFile,
    LakeColumn,
    Manifest,
    Outside,
    Part,
    TableDelta,
    TableShape,
    epoch_number,
)
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
    changed,
    digest,
    encoded,
    link_of,
    merged,
    plan_of,
    value_of,
    whole,
)
from catchment.model.table import Column, ColumnType, Kind, TableId
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
def manifests(draw: st.DrawFn, epoch: int) -> Manifest:
    """Any manifest of an epoch: of other shards and tables than the one before, too."""
    shards = draw(st.lists(st.sampled_from(SHARDS), min_size=1, unique=True))
    chosen = draw(shapes)[: draw(st.integers(1, 2))]
    progress = [
        Progress(shard, shape.table, draw(bounds), done=draw(st.booleans()))
        for shard in shards
        for shape in chosen
        if draw(st.integers(0, 3))
    ]
    some = st.sampled_from(shards)
    return Manifest(
        feed="shop",
        epoch=epoch_number(epoch),
        previous=epoch_number(epoch - 1),
        time_us=draw(st.integers(0, 9)),
        window_us=draw(st.integers(0, 9)),
        cut={shard: draw(positions) for shard in shards},
        sealed=draw(st.dictionaries(some, offsets)),
        progress=tuple(progress),
        shapes=chosen,
        deltas=tuple(draw(st.lists(deltas, max_size=2))),
        definitions=draw(st.dictionaries(some, st.lists(definitions, max_size=2).map(tuple))),
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
        if draw(st.integers(0, 3)) and other.cut.keys() == chain[-1].cut.keys():
            chain.append(other)
            continue
        last = chain[-1]
        shard = draw(st.sampled_from(sorted(last.cut)))
        moved = replace(
            last.repeated(epoch_number(epoch)),
            cut={**last.cut, shard: draw(positions)},
            progress=tuple(
                replace(one, rows=one.rows + draw(st.integers(0, 1)), done=draw(st.booleans()))
                for one in last.progress
            ),
        )
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


@given(chains(), st.sampled_from((0, 1, 4)))
@settings(max_examples=100, deadline=None)
def test_every_chain_comes_back(chain: list[Manifest], share: int) -> None:
    """With a share of 0 everything that can be is a change, however large it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SHARE_MAX", share)
        stored = written(chain)
    assert read_again(stored) == chain
    for end in range(len(chain)):
        assert read_again(stored[:end]) == chain[:end]


@given(chains())
@settings(max_examples=100, deadline=None)
def test_a_change_without_its_own_base_is_refused(chain: list[Manifest]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SHARE_MAX", 0)
        stored = written(chain)
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
    assert json.loads(change)["version"] == json.loads(record)["version"] == 2


def test_a_shard_at_rest_writes_when_it_was_asked_and_no_more() -> None:
    before, after = large(1), large(2)
    cut = {"-80": replace(before.cut["-80"], resets=Resets(0, 1, 2))}
    _, base = encoded(before, None)
    change, _ = encoded(replace(after, cut=cut), base)
    assert json.loads(change)["resets"] == {"-80": {"count": 0, "started": 1, "asked": 2}}
    assert "cut" not in json.loads(change)
    assert value_of(change, base, Manifest).cut == cut


def test_a_whole_record_every_so_many() -> None:
    base: Base[Manifest] | None = None
    wholes = []
    for turn in range(1, 110):
        record, base = encoded(large(turn), base)
        wholes += [turn] if link_of(record) is None else []
    assert wholes == [1, 52, 103]


def test_records_without_a_version() -> None:
    manifest, plan, commit = made.manifest(1), made.plan(1), made.commit(1)
    old = msgspec.json.encode(manifest, order="deterministic")
    assert digest(old) == manifest.digest()
    assert value_of(old, None, Manifest) == manifest
    assert base_of(old, Manifest).value == manifest
    assert plan_of(msgspec.json.encode(plan)) == plan == plan_of(whole(plan))
    assert value_of(msgspec.json.encode(commit), None, Commit) == commit


@pytest.mark.parametrize(
    "record", [whole(made.manifest(1)), encoded(large(2), encoded(large(1), None)[1])[0]]
)
def test_a_record_of_a_later_version_is_refused(record: bytes) -> None:
    later = record.replace(b'"version":2', b'"version":3')
    assert later != record
    for look in (link_of, plan_of, lambda r: base_of(r, Manifest), lambda r: value_of(r, None, Manifest)):
        with pytest.raises(OfLater, match=r"version 3, of a later Catchment.*docs/upgrade\.md"):
            look(later)


def test_damage_is_told() -> None:
    _, base = encoded(large(1), None)
    change, _ = encoded(large(2), base)
    for harm, said in (
        ({"progress": {"40": {"shard": "-80", "table": {"schema": "shop", "name": "t0"}}}}, "entry 40 of 40"),
        (
            {"progress": {"0": {"shard": "-80", "table": {"schema": "shop", "name": "x"}}}},
            "shop.x, which it does not",
        ),
        ({"resets": {"80-": None}}, "shards that its base does not have: 80-"),
        ({"epoch": "x"}, "cannot be read"),
    ):
        with pytest.raises(Unreadable, match=said):
            value_of(json.dumps({**json.loads(change), **harm}).encode(), base, Manifest)
    with pytest.raises(Unreadable, match="is to be whole"):
        base_of(change, Manifest)
    with pytest.raises(Unreadable, match="cannot be read"):
        link_of(b"{")
