"""A lake and a state store that an earlier version left are read, and go on (tests/layers/state/keep.py)."""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable

from catchment.api.epochs import epochs
from catchment.api.read import read, tables_at
from catchment.config import Feed, load
from catchment.feed.applier import Applier
from catchment.feed.settle import settle
from catchment.feed.upgrade import upgrade
from catchment.model import records
from catchment.model.errors import ConfigError, SinkError, StateError
from catchment.model.records import SHARE_MAX
from catchment.model.version import LAKE_LAYOUT, RECORD_VERSION
from catchment.serve.spark_source.offset import read as read_offset
from catchment.serve.spark_source.offset import written
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epochs_dir, tail_dir
from catchment.sink.delta.log.opened import open_table
from catchment.state.faults import Fault
from catchment.state.resume import Continue, decide
from catchment.state.store import Store
from catchment.watch.status import read_status
from tests.layers.sink.model import FEED, ORDERS
from tests.layers.state.keep import (
    ENDS,
    KEPT,
    NEWEST,
    SHARDS,
    TABLES,
    number,
    plan,
    record,
    run,
    stream,
    turn_of,
)

VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in KEPT.glob("*.tar.gz"))


# Of the lakes and stores that they left.
LAYOUTS = {"0.1.0": 1, "0.1.0-records-2": 2}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each version that left something."""
    found: str = request.param
    return found


@pytest.fixture
def kept(version: str, tmp_path: Path) -> Path:
    """What a version left, unpacked."""
    with tarfile.open(KEPT / f"{version}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def no_fault(place: Fault) -> None:
    """Nothing happens."""


def begin(applier: Applier) -> None:
    """What a run does before its first turn, once it has taken over."""
    _, stored, committed = applier.store.newest()
    row = applier.sink.newest()
    digests = applier.store.digests(stored.epoch) if stored is not None else ()
    decision = decide(FEED, stored, committed, row, digests)
    assert isinstance(decision, Continue)
    settle(applier, decision, committed, row)


def feed_of(directory: Path) -> Feed:
    """The feed in a directory, as its file would say."""
    shards = [{"name": s, "host": f"{s}.db", "user": "reader", "password": "secret"} for s in SHARDS]
    text = {
        "name": FEED,
        "source": {"keyspace": "shop", "shards": shards},
        "tables": [str(table.table) for table in TABLES],
        "sink": {"path": str(directory / "lake")},
        "state": f"sqlite:///{directory}/state.db",
    }
    file = directory / "feed.yaml"
    file.write_text(json.dumps(text))
    return load(file)


def go_on(directory: Path, turns: int = 3) -> None:
    """An upgrade, runs that settle what was left, and commit further epochs."""
    assert upgrade(feed_of(directory)).tables == tuple(table.table for table in TABLES)
    run(directory, begin, no_fault)

    def work(applier: Applier) -> None:
        begin(applier)
        for turn in range(NEWEST + 1, NEWEST + 1 + turns):
            turn_of(directory, turn, no_fault)(applier)

    run(directory, work, no_fault)


def rows(directory: Path, epoch: int | None = None) -> list[list[tuple[int, str]]]:
    """The rows of each table as of an epoch."""
    found = []
    for table in TABLES:
        columns = read(directory / "lake", table.table, epoch).arrow().sort_by("id").to_pydict()
        found.append(list(zip(columns["id"], columns["sig"], strict=True)))
    return found


def expected(turn: int) -> list[list[tuple[int, str]]]:
    """What `tests.layers.state.keep.record` has written up to a turn."""
    return [[(n, f"v{n}") for n in range(2, turn + 1)] for _ in TABLES]


@pytest.mark.parametrize("end", ENDS)
def test_what_is_kept_is_read(kept: Path, version: str, end: str) -> None:
    """Without a write: as readers, `status` and `doctor` do."""
    directory = kept / end
    newest = NEWEST if ENDS[end] in (None, Fault.AFTER_EPOCH_ROW) else NEWEST - 1
    assert [one.epoch for one in reversed(epochs(directory / "lake"))] == [
        number(turn) for turn in range(1, newest + 1)
    ]
    for turn in range(1, newest + 1):
        assert rows(directory, number(turn)) == expected(turn)
    with closing(Store.open(f"sqlite:///{directory}/state.db", FEED, create=False)) as store:
        found, manifest, commit = store.newest()
        assert found == plan(NEWEST)
        assert manifest is not None
        assert manifest.cut == record(kept / "made", NEWEST).cut
        assert commit is not None
        assert commit.epoch == number(NEWEST if ENDS[end] is None else NEWEST - 1)
        assert read_status(store).epoch == commit.epoch
    metadata = DeltaTable(epochs_dir(directory / "lake")).metadata()
    assert metadata.configuration["catchment.layout"] == str(LAYOUTS[version])


@pytest.mark.parametrize("share", [0, pytest.param(SHARE_MAX, marks=pytest.mark.wide)])
@pytest.mark.parametrize("end", ENDS)
def test_the_feed_goes_on(kept: Path, end: str, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a share of 0 every record that can be says what has changed; these small ones would be whole."""
    monkeypatch.setattr(records, "SHARE_MAX", share)
    directory = kept / end
    go_on(directory)
    # An epoch whose manifest was written is applied, the others of the run before it stand as they were.
    for turn in range(1, NEWEST + 4):
        assert rows(directory, number(turn)) == expected(turn)
    for row in EpochsTable(directory / "lake", FEED).read_all():
        turn = next(turn for turn in range(1, NEWEST + 4) if number(turn) == row.commit.epoch)
        assert row.manifest.cut == record(kept / "made", turn).cut
    for directory_ in (
        epochs_dir(directory / "lake"),
        *(tail_dir(directory / "lake", t.table) for t in TABLES),
    ):
        assert DeltaTable(directory_).metadata().configuration["catchment.layout"] == str(LAKE_LAYOUT)
    assert tables_at(directory / "lake").keys() == {str(table.table) for table in TABLES}


@pytest.mark.parametrize("end", ENDS)
def test_the_feed_goes_on_without_its_store(kept: Path, end: str) -> None:
    directory = kept / end
    (directory / "state.db").unlink()
    upgrade(feed_of(directory))
    standing: list[int] = []

    def work(applier: Applier) -> None:
        row = applier.sink.newest()
        _, stored, committed = applier.store.newest()
        decision = decide(FEED, stored, committed, row, ())
        assert isinstance(decision, Continue)
        settle(applier, decision, None, row)
        standing.append(decision.manifest.epoch)

    run(directory, work, no_fault)
    turn = next(turn for turn in range(1, NEWEST + 1) if number(turn) == standing[0])
    assert rows(directory) == expected(turn)


def test_a_store_of_layout_1_becomes_layout_2_when_it_is_written(kept: Path, version: str) -> None:
    """Not before: until then the version that left it may go on."""
    file = kept / "whole" / "state.db"
    with closing(Store.open(f"sqlite:///{file}", FEED)):
        assert _layout(file) == LAYOUTS[version]
    go_on(kept / "whole", turns=1)
    assert _layout(file) == 2


def _layout(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        found: int = connection.execute("SELECT version FROM catchment_version").fetchone()[0]
        return found


def test_records_of_a_later_version_are_refused(kept: Path) -> None:
    directory = kept / "whole"
    go_on(directory, turns=1)
    with closing(sqlite3.connect(directory / "state.db")) as connection, connection:
        connection.execute(
            "UPDATE catchment_record SET record = CAST(replace(record, "
            f"'\"version\":{RECORD_VERSION}', '\"version\":{RECORD_VERSION + 1}') AS BLOB)"
        )
    said = rf"has version {RECORD_VERSION + 1}, of a later Catchment.*docs/upgrade\.md"
    with (
        closing(Store.open(f"sqlite:///{directory}/state.db", FEED)) as store,
        pytest.raises(StateError, match=said),
    ):
        store.newest()


def test_the_offset_of_a_stream(kept: Path) -> None:
    offset = json.loads((kept / "offset.json").read_text())
    found = read_offset(offset, ORDERS.table)
    assert found is not None
    assert (found.cut.positions, found.batch) == (stream(2).cut.positions, stream(2).batch)
    assert read_offset(json.loads(json.dumps(written(found))), ORDERS.table) == found
    with pytest.raises(ConfigError, match=r"has version 9.*docs/upgrade\.md"):
        read_offset({**offset, "version": 9}, ORDERS.table)


def test_a_lake_of_a_later_layout_is_refused_by_who_wrote_this_one(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the version that left it does, which knows layout 1: it would misread rows of changes."""
    go_on(kept / "whole", turns=1)
    monkeypatch.setattr("catchment.sink.delta.log.properties.LAKE_LAYOUT", 1)
    for directory in (
        epochs_dir(kept / "whole/lake"),
        *(tail_dir(kept / "whole/lake", t.table) for t in TABLES),
    ):
        with pytest.raises(SinkError, match=f"has layout {LAKE_LAYOUT}, of a later Catchment"):
            open_table(directory)
