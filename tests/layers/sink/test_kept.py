"""The past beyond the readers' window: kept epochs are exact for every reader, others are named, the rest is gone."""

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import catchment
from catchment.api.epochs import epochs
from catchment.model.epoch import TableShape
from catchment.model.epoch_number import epoch_number, epoch_text, gci_of
from catchment.model.errors import ConfigError, SinkError
from catchment.sink.delta.kept.choice import Past, chosen
from catchment.sink.delta.kept.held import Held, Run
from catchment.sink.delta.kept.retained import Carried, retained
from catchment.sink.delta.layout import epoch_app, held_file, table_dir, versions_dir
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.properties import UNDISTURBED
from catchment.sink.delta.plain import settle
from catchment.sink.delta.plain import shape as shapes
from catchment.sink.delta.plain.vectors import files_of
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.long_run import HOUR, ITEMS, TABLES, Clock, LongRun, own_clock
from tests.layers.sink.model import FEED, ORDERS
from tests.layers.sink.test_settle import by_delta_rs
from tests.world.delta_scan import DeltaScan
from tests.world.settled import carry_out

COLUMNS = ["_shard", "_epoch", "id", "sig"]
PAST = Past(12.0 * HOUR, 72.0 * HOUR)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with own_clock(monkeypatch) as clock:
        yield clock


@pytest.fixture
def run(tmp_path: Path, clock: Clock) -> LongRun:
    order = UpkeepOrder(str(tmp_path), FEED, 1, 7200.0, past=PAST)
    return LongRun(tmp_path, clock, random.Random(tmp_path.name), order)


def version_of(run: LongRun, epoch: int, table: TableShape) -> int:
    """The version that SQL finds in `_catchment/versions`."""
    told = DeltaTable(versions_dir(run.root)).to_pyarrow_dataset().to_table().to_pylist()
    mine = (row for row in told if row["table_name"] == str(table.table) and row["epoch"] <= epoch)
    return max(int(row["version"]) for row in mine)


def must_be_exact(run: LongRun, judge: DeltaScan, epoch: int) -> None:
    """A kept epoch is read as of itself, by Catchment and by Delta's own time travel."""
    for table in TABLES:
        rows = run.rows(epoch, table)
        state = catchment.read(run.root, str(table.table), epoch)
        assert sorted(state.duckdb().fetchall()) == rows
        assert sorted(tuple(row.values()) for row in state.arrow().to_pylist()) == rows
        place, version = table_dir(run.root, table.table), version_of(run, epoch, table)
        for found in (judge.rows(place, COLUMNS, version), by_delta_rs(place, version).select(COLUMNS)):
            assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows, (epoch, version)


def needed(run: LongRun, table: TableShape) -> set[str]:
    """The files of the versions of the window, and of those that are kept epochs."""
    log, begin = DeltaLog(table_dir(run.root, table.table)), run.clock.seconds - run.order.keep_seconds
    newest = log.newest()
    assert newest is not None
    since = newest.version
    while since and made(log, since) > begin:
        since -= 1
    found = [retained(log, epoch_app(FEED, table.table), epoch) for epoch in run.kept()]
    versions = {*range(since, newest.version + 1), *(one.version for one in found if one is not None)}
    snapshots = [log.at(version) for version in versions]
    assert None not in snapshots
    return {n for s in snapshots if s is not None for f in s.files.values() for n in files_of(f.add)}


def made(log: DeltaLog, version: int) -> float:
    entry = log.directory / "_delta_log" / f"{version:020d}.json"
    return float(json.loads(Path(str(entry)).read_text().splitlines()[0])["commitInfo"]["timestamp"]) / 1000


def on_disk(run: LongRun, table: TableShape) -> set[str]:
    directory = table_dir(run.root, table.table)
    return {
        str(path.relative_to(directory)) for path in (*directory.glob("*.parquet"), *directory.glob("_dv/*"))
    }


def must_be_in_order(run: LongRun) -> None:
    """After a clean: what is kept and what lies there is what has to."""
    assert sorted(found.epoch for found in epochs(run.root, 1000, kept=True)) == run.kept()
    for table in TABLES:
        assert on_disk(run, table) == needed(run, table)


def is_refused(run: LongRun, epoch: int) -> bool:
    """Whether an epoch that is not kept is refused, with its neighbours told. If all of it is there by chance it is
    read, and exact."""
    kept, said = run.kept(), ""
    sides = [f"{epoch_text(e)} before it" for e in kept if e < epoch][-1:]
    sides += [f"{epoch_text(e)} after it" for e in kept if e > epoch][:1]
    try:
        states = catchment.read(run.root, ["shop.orders", "shop.items"], epoch)
    except SinkError as error:
        said = str(error)
    else:
        for table, state in zip(TABLES, states, strict=True):
            assert sorted(state.duckdb().fetchall()) == run.rows(epoch, table)
        return False
    assert f"cannot be read as of epoch {epoch_text(epoch)} any more" in said
    assert said.endswith(f"; of those that are kept the nearest: {' and '.join(sides)}")
    return True


@pytest.mark.wide
def test_days_of_epochs(run: LongRun) -> None:
    rng = run.rng
    for number in range(36):
        run.turn(rng.choice((300.0, 1200.0, 5000.0, 18000.0)))
        if number % 12 == 11:
            run.keep_up()
            must_be_in_order(run)
    kept, window = run.kept(), run.clock.seconds - 7200
    assert len({gci_of(epoch) // 86400 for epoch in kept}) > 2
    with DeltaScan() as judge:
        for epoch in kept:
            must_be_exact(run, judge, epoch)
    shown = {found.epoch: found.readable for found in epochs(run.root, 1000)}
    assert all(shown[epoch] for epoch in kept)
    others = [epoch for epoch in run.states if epoch in shown and not shown[epoch]]
    assert sum(is_refused(run, epoch) for epoch in rng.sample(others, 8)) > 1
    forgotten = [epoch for epoch in run.states if epoch not in shown]
    assert forgotten
    with pytest.raises(ConfigError, match="older than two days a lake knows those that it keeps"):
        catchment.read(run.root, "shop.orders", forgotten[0])
    for epoch in run.states:
        if gci_of(epoch) >= window:
            assert sorted(catchment.read(run.root, "shop.orders", epoch).duckdb().fetchall()) == run.rows(
                epoch, ORDERS
            )


def test_a_vacuum_by_others_takes_nothing(run: LongRun) -> None:
    """Files of kept versions are older than the longest window, and no checkpoint names them as removed."""
    run.order = UpkeepOrder(
        str(run.root), FEED, 1, 7200.0, past=Past(PAST.hourly_seconds, 1000.0 * 24 * HOUR)
    )
    for _ in range(6):
        run.turn(7200.0)
    run.keep_up()
    place = table_dir(run.root, ORDERS.table)
    for path in place.glob("*.parquet"):
        os.utime(path, (0, 0))
    before = on_disk(run, ORDERS)
    assert DeltaTable(place).vacuum(dry_run=False) == []
    assert DeltaTable(place).vacuum(dry_run=False, full=True) == []
    assert on_disk(run, ORDERS) == before
    with DeltaScan() as judge:
        for epoch in run.kept():
            must_be_exact(run, judge, epoch)


class _End(BaseException):
    """The process ends here."""


@contextmanager
def ending(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[list[bool]]:
    """After so many changes of the file system each further one ends what is done in the block. Whether one did."""
    ended: list[bool] = []
    left = after

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                ended.append(True)
                raise _End
            return change(*given, **named)

        return instead

    with monkeypatch.context() as patched, suppress(_End):
        patched.setattr(os, "link", counted(os.link))
        patched.setattr(Path, "unlink", counted(Path.unlink))
        patched.setattr(Path, "replace", counted(Path.replace))
        yield ended


def test_a_clean_may_end_anywhere(run: LongRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one makes it good, and no kept epoch lacks anything in between."""
    for _ in range(5):
        run.turn(2400.0)
    run.keep_up()
    run.clock.seconds += 3 * HOUR
    run.epoch(*TABLES)
    changes = 0
    while True:
        with ending(monkeypatch, changes) as ended:
            run.keep_up()
        if not ended:
            break
        for found in epochs(run.root, 1000, kept=True):
            for table in TABLES:
                rows = catchment.read(run.root, str(table.table), found.epoch).duckdb().fetchall()
                assert sorted(rows) == run.rows(found.epoch, table)
        run.clock.seconds += 60
        changes += 3
    assert changes > 8
    run.clock.seconds += 7 * HOUR  # of what an attempt has left nobody can tell sooner that it has lost
    run.keep_up()
    must_be_in_order(run)
    with DeltaScan() as judge:
        for epoch in run.kept():
            must_be_exact(run, judge, epoch)


def test_the_log_is_thinned_out(run: LongRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of the newest version find few entries, whatever is kept; a log that remembers an old version goes on."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 4)
    old = DeltaLog(table_dir(run.root, ORDERS.table))
    run.epoch(*TABLES)
    run.keep_up()
    run.clock.seconds += 14 * HOUR
    for number in range(14):
        run.clock.seconds += 1800
        run.epoch(*TABLES)
        run.keep_up()
        if number == 2:
            assert old.newest() is not None
    run.clock.seconds += 49 * HOUR
    run.epoch(*TABLES)
    run.keep_up()
    log = DeltaLog(old.directory)
    newest = log.newest()
    assert newest is not None
    assert old.newest() == newest
    assert newest.version > 13
    entries = [int(path.stem) for path in (Path(str(log.directory)) / "_delta_log").glob("*.json")]
    kept = {
        one.version
        for e in run.kept()
        if (one := retained(log, epoch_app(FEED, ORDERS.table), e)) is not None
    }
    floor = max(version for version in log.checkpoints() if version not in kept)
    assert min(kept) < floor
    assert set(entries) <= kept | set(range(floor, newest.version + 1))
    assert len(entries) < newest.version
    assert not any(row["remove"] for row in rows_of_checkpoint(log, max(log.checkpoints())))
    with DeltaScan() as judge:
        for epoch in run.kept():
            must_be_exact(run, judge, epoch)
    # A checkpoint by others, of a kept version, is not the newest one.
    DeltaTable(log.directory, version=min(kept)).create_checkpoint()
    assert DeltaLog(log.directory).newest() == newest


def rows_of_checkpoint(log: DeltaLog, version: int) -> list[dict[str, Any]]:
    path = log.directory / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_windows_that_are_changed(run: LongRun) -> None:
    """Longer ones count from now on, shorter ones with the next clean, none takes all."""
    for _ in range(9):
        run.turn(3600.0)
    run.keep_up()
    before = run.kept()
    run.order = replace(run.order, past=Past(4.0 * HOUR))
    run.keep_up()
    must_be_in_order(run)
    assert set(run.kept()) < set(before)
    held_file(run.root, ORDERS.table).unlink()  # it may be dropped at will
    run.clock.seconds += HOUR
    run.keep_up()
    must_be_in_order(run)
    run.order = replace(run.order, past=Past())
    run.keep_up()
    must_be_in_order(run)
    assert epochs(run.root, kept=True) == []
    directory = table_dir(run.root, ORDERS.table)
    assert len(DeltaLog(directory).checkpoints()) > 0  # those stay as long as the log
    run.order = replace(run.order, past=PAST)
    run.keep_up()
    assert [found.epoch for found in epochs(run.root, kept=True)] == [max(run.whole())]


def test_a_table_at_rest_costs_nothing(run: LongRun) -> None:
    """Kept epochs share the version of a table that has not changed between them."""
    run.epoch(*TABLES)
    run.keep_up()
    for _ in range(4):
        run.clock.seconds += HOUR
        run.epoch(ORDERS)
        run.keep_up()
    assert len(run.kept()) == 5
    assert DeltaTable(table_dir(run.root, ITEMS.table)).version() == 0
    assert not held_file(run.root, ITEMS.table).exists()
    with DeltaScan() as judge:
        for epoch in run.kept():
            must_be_exact(run, judge, epoch)


def test_tables_of_earlier_versions_are_left_alone_by_others_too(
    run: LongRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their next settle, be it of nothing."""
    with monkeypatch.context() as patched:
        patched.setattr(shapes, "UNDISTURBED", {})
        before = {name: told for name, told in settle._PROPERTIES.items() if name not in UNDISTURBED}
        patched.setattr(settle, "_PROPERTIES", before)
        run.epoch(*TABLES)
        run.keep_up()
    run.epoch(ORDERS)
    run.keep_up()
    for table in TABLES:
        configuration = DeltaTable(table_dir(run.root, table.table)).metadata().configuration
        assert configuration["delta.deletedFileRetentionDuration"] == "interval 36500 days"
        assert configuration["delta.enableExpiredLogCleanup"] == "false"


def test_an_epoch_that_some_table_is_not_settled_at_is_not_kept(run: LongRun) -> None:
    run.epoch(*TABLES)
    run.keep_up()
    last = run.epoch(ITEMS)
    run.clock.seconds += HOUR
    run.epoch(ORDERS)
    run.order = replace(run.order, tables=(ORDERS.table,))
    carry_out(run.order)
    assert last not in [found.epoch for found in epochs(run.root, kept=True)]
    assert [found.epoch for found in epochs(run.root, kept=True)] == run.kept()


NUMBERS = st.sets(st.integers(0, 200 * HOUR), max_size=60)
PASTS = st.builds(Past, *[st.integers(0, 200 * HOUR).map(float)] * 2)


@given(NUMBERS, NUMBERS, st.integers(0, 100 * HOUR), st.integers(0, 100 * HOUR), PASTS)
def test_thinning_may_go_in_steps(first: set[int], more: set[int], now: int, later: int, past: Past) -> None:
    """The last epoch of each hour and day, while its time lasts; it is the same however often it is done."""
    begin = max(first, default=0)
    early, late = (
        {epoch_number(second) for second in some} for some in (first, {begin + s + 1 for s in more})
    )
    at_once = chosen(early | late, now + later, past)
    assert chosen([*chosen(early, now, past), *late], now + later, past) == at_once
    assert at_once == tuple(sorted(at_once))
    for epoch in early | late:
        second, reasons = gci_of(epoch), []
        for size, seconds in ((HOUR, past.hourly_seconds), (24 * HOUR, past.daily_seconds)):
            later_ones = [e for e in early | late if e > epoch and gci_of(e) // size == second // size]
            reasons.append(seconds and now + later - second <= seconds and not later_ones)
        assert (epoch in at_once) == any(reasons)


FILES = st.lists(st.sets(st.sampled_from("abcdefgh")), max_size=8)


@given(FILES, st.sets(st.integers(0, 7)))
def test_held_files_are_those_of_the_versions_that_stay(files: list[set[str]], stays: set[int]) -> None:
    """A file may go and come again: versions count, not their neighbours."""
    held = Held()
    for number, names in enumerate(files):
        held = held.with_version(Carried(number, 10 * number), 10 * number, names)
    thinned = held.thinned([10 * number for number in sorted(stays) if number < len(files)])
    left = [number for number in range(len(files)) if number in stays]
    assert [one.version for one in thinned.versions] == left
    assert set(thinned.files) == {name for number in left for name in files[number]}
    for name, runs in thinned.files.items():
        covered = [n for n in left if any(run.first <= n <= run.last for run in runs)]
        assert covered == [n for n in left if name in files[n]]
        assert all(isinstance(run, Run) for run in runs)
