"""What the state store says of a feed's runs: how they ended, when they last lived, what troubled them."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection

from catchment import __version__
from catchment.cli.status import _lines
from catchment.config import NotifyConfig
from catchment.demo.server import PrivateServer
from catchment.model.errors import ConnectionLost, LeaseLost, StateError
from catchment.state import journal
from catchment.state.journal import Journal
from catchment.state.lease import Owner, hold, holder_in
from catchment.state.notes import ErrorNote, with_errors
from catchment.state.store import Store
from catchment.watch import status
from catchment.watch.course import Course
from catchment.watch.notify import Notifier
from catchment.watch.report import Observer
from catchment.watch.status import read_status
from catchment.watch.troubles import Troubles
from catchment.watch.vitals import Vitals
from catchment.watch.watch import Watch
from tests.world import records
from tests.world.disks import unwritable
from tests.world.patience import until
from tests.world.worlds import SetClocks, put

SECOND = 1_000_000


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store.open(url, "shop")
    yield opened
    opened.close()


def lines(store: Store) -> list[str]:
    """What `catchment status` prints."""
    return list(_lines(read_status(store)))


def watched(store: Store, fence: int, stop: threading.Event | None = None) -> Watch:
    """The watch of a run that has no metrics."""
    vitals, troubles = Vitals(store.feed, ["-80"]), Troubles()
    notifier = Notifier(store.feed, NotifyConfig())
    stop = stop or threading.Event()
    return Watch(
        Journal(store, fence), vitals, troubles, notifier, Course(), file=None, stop=stop, observer=Observer()
    )


def run_ends_by(store: Store, error: BaseException) -> None:
    """A run that holds the lease and ends by an error."""
    with (
        hold(store) as lease,
        pytest.raises(type(error)),
        watched(store, lease.fence),
    ):
        raise error


def lost(message: str, shard: str = "-80") -> ConnectionLost:
    error = ConnectionLost(message)
    error.shard = shard
    return error


def test_a_run_that_ended_by_an_error(store: Store) -> None:
    run_ends_by(store, lost("shard -80 at db1:3306: no route to host"))
    found = read_status(store)
    assert found.runner == ""
    assert found.run is not None
    assert found.run.exit_code == 3
    assert found.run.owner.startswith("process ")
    assert found.run.version == __version__
    assert found.run.ended is not None
    assert abs((datetime.now(UTC) - datetime.fromisoformat(found.run.ended)).total_seconds()) < 60
    assert found.run.error == found.errors[0]
    (error,) = found.errors
    assert (error.kind, error.shard, error.count) == ("ConnectionLost", "-80", 1)
    first, second, *_ = lines(store)
    assert first.startswith(f"feed shop: not running since {found.run.ended} (")
    assert first.endswith(" ago), exit code 3")
    assert second == "ConnectionLost: shard -80 at db1:3306: no route to host"


@pytest.mark.parametrize(("stopped", "code"), [(True, 130), (False, 0)])
def test_a_run_that_was_stopped_or_caught_up(store: Store, stopped: bool, code: int) -> None:
    stop = threading.Event()
    with hold(store) as lease, watched(store, lease.fence, stop):
        assert "run by process" in lines(store)[0]
        if stopped:
            stop.set()
    assert lines(store)[0].endswith(f"exit code {code}")
    assert read_status(store).errors == ()


def test_another_librarys_words_are_not_kept(store: Store) -> None:
    run_ends_by(store, ValueError("cannot log in with hunter2"))
    found = read_status(store)
    assert found.run is not None
    assert (found.run.exit_code, found.errors[0].kind) == (70, "ValueError")
    assert "hunter2" not in str(found)


def test_equal_errors_are_counted_and_old_ones_forgotten(store: Store) -> None:
    def note(message: str, at: int) -> ErrorNote:
        return ErrorNote("ConnectionLost", message, "-80", at, at)

    kept = with_errors((note("away", 1), note("torn", 2)), (note("away", 3), note("away", 5)))
    assert kept == (note("torn", 2), ErrorNote("ConnectionLost", "away", "-80", 1, 5, 3))
    many = with_errors((), tuple(note(str(at), at) for at in range(100)))
    assert [error.last_us for error in many] == list(range(80, 100))
    for _ in range(3):
        run_ends_by(store, lost("away"))
    run_ends_by(store, lost("away", shard="80-"))
    assert [(error.shard, error.count) for error in read_status(store).errors] == [("80-", 1), ("-80", 3)]


_RUN = """
import sys, time
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.state.test_journal import watched
store = Store.open(sys.argv[1], "shop")
with hold(store) as lease, watched(store, lease.fence):
    print("runs", flush=True)
    time.sleep(600)
"""


def test_a_run_that_was_killed(store: Store, url: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", _RUN, url], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    began = read_status(store)
    assert began.run is not None
    assert f"process {process.pid}" in began.runner
    started = began.run.started

    def alive() -> bool:
        now = read_status(store).run
        return now is not None and now.last_sign_of_life > started

    until("a further sign of life", alive)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    found = read_status(store)
    assert found.runner == ""
    assert found.run is not None
    assert (found.run.ended, found.run.exit_code, found.run.error) == (None, None, None)
    assert found.run.last_sign_of_life > began.run.started
    first = lines(store)[0]
    assert first.startswith(f"feed shop: not running since about {found.run.last_sign_of_life} (")
    assert first.endswith("its last sign of life: killed without an exit code")


def test_a_run_that_is_frozen(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(store) as lease, watched(store, lease.fence):
        with monkeypatch.context() as patch, store.database.transaction() as connection:
            put(patch, SetClocks(us=time.time_ns() // 1000 - 3600 * SECOND))
            journal.give_sign_of_life(connection, "shop")
        found = lines(store)
    assert found[1].startswith("its last sign of life is of 20")
    assert found[1].endswith("(60 min ago)")


def test_only_the_holder_writes(store: Store) -> None:
    with hold(store) as lease:
        old = Journal(store, lease.fence)
    with hold(store) as lease:
        Journal(store, lease.fence).begin("process 8 on db")
        writes: list[Callable[[], None]] = [
            lambda: old.begin("x"),
            lambda: old.end(0, None),
            lambda: old.add(()),
        ]
        for write in writes:
            with pytest.raises(LeaseLost):
                write()
        run = read_status(store).run
    assert run is not None
    assert run.owner == "process 8 on db"


def older(store: Store) -> None:
    """Make the store one that an earlier program wrote."""
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
        store.put_commit(records.commit(1), lease.fence)
    with store.database.transaction() as connection:
        connection.exec_driver_sql("DROP TABLE catchment_journal")


def test_an_older_store_is_read_without_writing_and_taken_up_by_a_run(
    store: Store, url: str, tmp_path: Path
) -> None:
    older(store)
    before = (tmp_path / "state.db").read_bytes()
    reader = Store.open(url, "shop", create=False)
    with unwritable(tmp_path / "state.db"):
        found = read_status(reader)
    assert (found.epoch, found.run, found.errors) == (records.commit(1).epoch, None, ())
    assert lines(reader)[0] == "feed shop: not running"
    assert (tmp_path / "state.db").read_bytes() == before
    again = Store.open(url, "shop")
    run_ends_by(again, lost("away"))
    assert read_status(again).errors[0].message == "away"
    assert read_status(again).epoch == records.commit(1).epoch


def test_a_damaged_journal_is_named(store: Store) -> None:
    run_ends_by(store, lost("away"))
    with store.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE catchment_journal SET record = '{' WHERE kind = 'run'")
    with pytest.raises(StateError, match="the journal of feed shop cannot be read"):
        read_status(store)


@pytest.fixture
def server_url(shard: PrivateServer, fresh_schema: Callable[..., str]) -> Iterator[str]:
    """A store's URL on a server, where each statement of a session has a moment of its own."""
    schema = fresh_schema(shard)
    user = f"keeper_{schema}"
    shard.sql(f"CREATE USER {user} IDENTIFIED BY 'pw'", f"GRANT ALL ON {schema}.* TO {user}")
    yield f"mysql+pymysql://{user}:pw@{shard.host}:{shard.port}/{schema}"
    shard.sql(f"DROP USER {user}")


def test_status_is_of_one_moment(
    server_url: str, shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written while it reads is not in it: here the run ends then, and its lease is free."""
    isolation = (
        "transaction_isolation"
        if shard.sql("SHOW VARIABLES LIKE 'transaction_isolation'")
        else "tx_isolation"
    )
    shard.sql(f"SET GLOBAL {isolation} = 'READ-COMMITTED'")
    store = Store.open(server_url, "shop")
    running = ExitStack()
    lease = running.enter_context(hold(store))
    running.enter_context(watched(store, lease.fence))
    asked = holder_in

    def end_first(connection: Connection, of: Store) -> Owner | None:
        running.close()
        return asked(connection, of)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(status, "holder_in", end_first)
            found = read_status(store)
        assert found.runner.startswith("process")
        assert found.run is not None
        assert found.run.ended is None
        assert lines(store)[0].endswith("exit code 0")
    finally:
        running.close()
        store.close()
        shard.sql(f"SET GLOBAL {isolation} = 'REPEATABLE-READ'")


def test_an_older_store_on_a_server_where_one_may_only_read(server_url: str, shard: PrivateServer) -> None:
    store = Store.open(server_url, "shop")
    older(store)
    schema = server_url.rpartition("/")[2]
    user = f"keeper_{schema}"
    shard.sql(f"REVOKE ALL ON {schema}.* FROM {user}", f"GRANT SELECT ON {schema}.* TO {user}")
    store.close()
    with closing(Store.open(server_url, "shop", create=False)) as reader:
        assert read_status(reader).epoch == records.commit(1).epoch
    with pytest.raises(StateError, match="CREATE command denied"):
        Store.open(server_url, "shop")
