"""A run waits for its state store as long as it may, and what each driver says of a store that is away is known."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pymysql.err
import pytest
from sqlalchemy.exc import DBAPIError

from catchment.model.errors import StateAway, StateError
from catchment.state.lease import hold
from catchment.state.patience import Patience, patient, until_there
from catchment.state.refusals import advice
from catchment.state.store import Store
from tests.world import records


class Unwaited(threading.Event):
    """An event that nobody waits for: `met` is called in place of each wait."""

    def __init__(self) -> None:
        super().__init__()
        self.met: Callable[[], object] = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        self.met()
        return self.is_set()


class Told:
    """Hears what a wait tells."""

    def __init__(self, wait_max: float | None) -> None:
        self.stop = Unwaited()
        self.heard: list[str] = []
        self.patience = Patience(self.stop, wait_max, self._away, lambda: self.heard.append("back"))

    def _away(self, error: StateAway) -> None:
        self.heard.append("away")


def failing(times: int, told: Told | None = None) -> Callable[[], str]:
    left = [times]

    def work() -> str:
        if left[0]:
            left[0] -= 1
            if told is not None and not left[0]:
                told.stop.set()
            raise StateAway("gone")
        return "done"

    return work


def test_it_is_tried_until_it_is_there() -> None:
    told = Told(None)
    assert until_there(failing(4), told.patience) == "done"
    assert told.heard == ["away"] * 4 + ["back"]


def test_without_patience_it_is_told_at_once() -> None:
    with pytest.raises(StateAway, match="gone"):
        until_there(failing(1), None)


def test_a_run_that_is_to_stop_does_not_wait() -> None:
    told = Told(None)
    with pytest.raises(StateAway):
        until_there(failing(9, told), told.patience)


def test_at_the_limit_it_is_no_error_to_wait_for_any_more() -> None:
    told = Told(0.0)
    with pytest.raises(StateError, match="waited for") as met:
        until_there(failing(10_000), told.patience)
    assert not isinstance(met.value, StateAway)


def test_an_error_of_another_kind_is_not_waited_for() -> None:
    class Of:
        patience = Told(None).patience

    @patient
    def work(of: Of) -> None:
        raise StateError("damaged")

    with pytest.raises(StateError, match="damaged"):
        work(Of())


def test_a_file_that_another_program_locks_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.state.database._BUSY_SECONDS", 0.01)
    told = Told(None)
    store = Store.open(f"sqlite:///{tmp_path}/state.db", "shop", patience=told.patience)
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None, check_same_thread=False)
    with hold(store) as lease:
        other.execute("BEGIN EXCLUSIVE")
        told.stop.met = lambda: other.execute("ROLLBACK")
        store.put_plan(records.plan(1), lease.fence)
    assert told.heard == ["away", "back"]
    assert store.newest()[0] == records.plan(1)


def test_a_store_that_was_deleted_is_not_waited_for(tmp_path: Path) -> None:
    told = Told(None)
    store = Store.open(f"sqlite:///{tmp_path}/state.db", "shop", patience=told.patience)
    (tmp_path / "state.db").unlink()
    with pytest.raises(StateError, match="the directory exists") as met:
        store.newest()
    assert not isinstance(met.value, StateAway)


class _Postgres(Exception):
    """As psycopg has it: without SQLSTATE where no session came about."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("said")
        self.sqlstate = sqlstate


class OperationalError(_Postgres):
    """The name counts."""


@pytest.mark.parametrize(
    ("cause", "passes"),
    [
        (pymysql.err.OperationalError(2003, "Can't connect"), True),
        (pymysql.err.OperationalError(2013, "Lost connection"), True),
        (pymysql.err.OperationalError(1290, "--read-only"), True),
        (pymysql.err.OperationalError(1045, "Access denied"), False),
        (pymysql.err.ProgrammingError(1146, "no such table"), False),
        (pymysql.err.OperationalError(1054, "no such column"), False),
        (OperationalError(None), True),
        (OperationalError("57P03"), True),
        (OperationalError("25006"), True),
        (OperationalError("28P01"), False),
        (_Postgres("42P01"), False),
        (_Postgres(None), False),
    ],
)
def test_what_drivers_say(cause: Exception, passes: bool) -> None:
    assert advice(DBAPIError("SELECT 1", None, cause))[0] is passes
