"""What the log and notices say of stale tables: one line and one notice for each trouble, of however many tables."""

import logging
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from catchment.config import NotifyConfig, NotifyEvent
from catchment.model.epoch import Manifest
from catchment.model.stale import Stale
from catchment.model.table import TableId
from catchment.watch.notify import Notifier
from catchment.watch.stale_tables import StaleTables
from catchment.watch.vitals import Vitals
from tests.world.records import large

TABLES = sorted(large(1).tables)
PURGED = "shard -80: log file binlog.000001 is no longer on the server"
E1 = "1970-01-01T00:00:00Z.0001"


def epoch(turn: int, stale: Iterable[Stale] = ()) -> Manifest:
    return replace(large(turn), stale=tuple(stale))


def stale(tables: Iterable[TableId], reason: str = PURGED, as_of: int = 1) -> list[Stale]:
    return [Stale(table, as_of, 1, ("-80",), reason) for table in tables]


@pytest.fixture
def notices() -> list[tuple[NotifyEvent, str]]:
    return []


@pytest.fixture
def observed(notices: list[tuple[NotifyEvent, str]], caplog: pytest.LogCaptureFixture) -> StaleTables:
    caplog.set_level(logging.INFO)
    return StaleTables(epoch(1), Vitals("shop", ["-80"]), Notifier("shop", NotifyConfig(), notices.append))


def test_a_lost_log_of_many_tables_is_one_line_at_its_beginning_and_one_at_its_end(
    observed: StaleTables, notices: list[tuple[NotifyEvent, str]], caplog: pytest.LogCaptureFixture
) -> None:
    observed.observe(epoch(2, stale(TABLES)))
    first = ", ".join(map(str, TABLES[:3]))
    begun = (
        f"40 tables ({first} and 37 more; see catchment tables) are stale (readers see epoch {E1}): {PURGED}"
    )
    assert caplog.messages == [begun]
    assert notices == [(NotifyEvent.STALE, begun)]
    (record,) = caplog.records
    assert (record.levelname, vars(record)["tables"]) == ("WARNING", 40)
    for turn in range(3, 43):
        observed.observe(epoch(turn, stale(TABLES[turn - 2 :])))
        if turn < 42:
            assert len(caplog.messages) == 1, "its tables come back one by one"
    assert caplog.messages[1:] == [
        f"40 tables ({first} and 37 more; see catchment tables) are exact again as of epoch 1970-01-01T00:00:42Z.0000"
    ]
    assert caplog.records[-1].levelname == "INFO"
    assert len(notices) == 1


def test_each_trouble_has_its_line(observed: StaleTables, caplog: pytest.LogCaptureFixture) -> None:
    one, other, *rest = TABLES
    observed.observe(epoch(2, [*stale([one]), *stale([other], "it was swapped"), *stale(rest, as_of=2)]))
    assert [
        message.partition(" are ")[0].partition(" is ")[0].partition(" (")[0] for message in caplog.messages
    ] == [
        str(one),
        str(other),
        "38 tables",
    ]
    assert [vars(record).get("table") for record in caplog.records] == [str(one), str(other), None]


def test_a_table_that_gets_another_reason_or_leaves_is_not_exact_again(
    observed: StaleTables, caplog: pytest.LogCaptureFixture
) -> None:
    one, other, *_ = TABLES
    observed.observe(epoch(2, stale([one, other])))
    observed.observe(epoch(3, [*stale([one], "it was altered"), *stale([other])]))
    observed.observe(epoch(4, [*stale([one], "it was altered"), *stale([other])]))
    assert len(caplog.messages) == 2
    assert caplog.messages[-1] == f"{one} is stale (readers see epoch {E1}): it was altered"
    observed.observe(epoch(5, stale([one], "it was altered")).without([other]))
    assert len(caplog.messages) == 2
    observed.observe(epoch(6))
    assert caplog.messages[2:] == [f"{one} is exact again as of epoch 1970-01-01T00:00:06Z.0000"]


def test_a_run_that_begins_says_so_without_a_notice(
    notices: list[tuple[NotifyEvent, str]], caplog: pytest.LogCaptureFixture
) -> None:
    standing = epoch(2, stale(TABLES[:2]))
    StaleTables(standing, Vitals("shop", ["-80"]), Notifier("shop", NotifyConfig(), notices.append))
    one, other = TABLES[:2]
    assert caplog.messages == [f"2 tables ({one}, {other}) are stale (readers see epoch {E1}): {PURGED}"]
    assert notices == []
