"""Which events a run's reports become: what is different, once, and nothing else."""

from collections.abc import Iterator

from msgspec.structs import replace

from catchment.config import NotifyEvent
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number, epoch_text
from catchment.model.order import Action, Answer, Kept, Order
from catchment.model.sessions import Held
from catchment.model.shard import Copy
from catchment.model.stale import Stale
from catchment.model.table import TableId
from catchment.model.throttle import Breach, Check, Throttled
from catchment.state.notes import Trouble
from catchment.watch.event_lines import Event, EventLines
from catchment.watch.report import Report, Rest
from tests.world import records

ORDERS, ITEMS = TableId("shop", "orders"), TableId("shop", "items")
SINCE = 1_700_000_000_000_000


def manifest(turn: int, *copies: Copy, stale: tuple[Stale, ...] = ()) -> Manifest:
    made = records.manifest(turn)
    shapes = tuple(replace(made.shapes[0], table=copy.table) for copy in copies)
    cut = replace(made.cut, shards={"-80": replace(made.cut.shards["-80"], copies=copies)})
    return replace(made, cut=cut, shapes=shapes, stale=stale)


def report(of: Manifest) -> Report:
    return Report(of, replace(records.commit(1), epoch=of.epoch, time_us=of.time_us + 250_000), {}, {}, {})


def at(turn: int) -> str:
    return epoch_text(epoch_number(turn))


def named(events: Iterator[Event]) -> list[tuple[object, ...]]:
    """Name, table or epoch, and state of each."""
    return [(one["event"], one.get("table", one.get("epoch")), one.get("state")) for one in events]


def test_a_copy_from_its_begin_to_its_end() -> None:
    lines = EventLines()
    (begun,) = lines.began(manifest(1, Copy(ORDERS), Copy(ITEMS)))
    assert begun == {
        "event": "begun",
        "epoch": at(1),
        "cut": {"-80": "binlog.000001:1000 [0-1-1]"},
        "tables": {"shop.items": "copying", "shop.orders": "copying"},
    }
    (epoch, *rest) = lines.committed(report(manifest(2, Copy(ORDERS, (5,), rows=5), Copy(ITEMS))))
    assert epoch == {
        "event": "epoch",
        "epoch": at(2),
        "cut": {"-80": "binlog.000001:2000 [0-1-2]"},
        "absent": [],
        "changes": 9,
        "rows_copied": 10,
        "copied": False,
        "lag_seconds": 0.25,
    }
    assert rest == [{"event": "copy", "table": "shop.orders", "shard": "-80", "state": "begun", "rows": 5}]
    half = manifest(3, Copy(ORDERS, (9,), done=True, rows=9), Copy(ITEMS))
    assert named(lines.committed(report(half)))[1:] == [
        ("copy", "shop.orders", "done"),
        ("table", "shop.orders", "following"),
    ]
    whole = (Copy(ORDERS, (9,), done=True, rows=9), Copy(ITEMS, done=True))
    assert named(lines.committed(report(manifest(4, *whole))))[1:] == [
        ("copy", "shop.items", "done"),
        ("table", "shop.items", "following"),
    ]
    assert named(lines.committed(report(manifest(5, *whole)))) == [
        ("epoch", at(5), None),
        ("caught_up", at(5), None),
    ]
    assert named(lines.committed(report(manifest(6, *whole)))) == [("epoch", at(6), None)]


def test_a_table_that_goes_stale_and_comes_back() -> None:
    lines, copy = EventLines(), Copy(ORDERS, done=True)
    list(lines.began(manifest(1, copy)))
    stale = Stale(ORDERS, epoch_number(1), SINCE, ("-80",), "its rows were converted")
    *_, table = lines.committed(report(manifest(2, stale=(stale,))))
    assert table == {
        "event": "table",
        "table": "shop.orders",
        "from": "following",
        "state": "stale",
        "as_of": at(1),
        "reason": "its rows were converted",
    }
    again = manifest(3, Copy(ORDERS), stale=(stale,))
    assert ("table", "shop.orders", "renewing") in named(lines.committed(report(again)))
    assert named(lines.committed(report(manifest(4, copy))))[1:] == [
        ("copy", "shop.orders", "done"),
        ("table", "shop.orders", "following"),
    ]
    assert ("caught_up", at(5), None) in named(lines.committed(report(manifest(5, copy))))


def test_a_table_that_enters_and_one_that_leaves() -> None:
    lines = EventLines()
    list(lines.began(manifest(1, Copy(ORDERS, done=True))))
    assert ("table", "shop.items", "copying") in named(
        lines.committed(report(manifest(2, Copy(ORDERS, done=True), Copy(ITEMS))))
    )
    (gone,) = (one for one in lines.committed(report(manifest(3, Copy(ITEMS)))) if one["event"] == "table")
    assert (gone["table"], gone["from"]) == ("shop.orders", "following")


def test_a_rest_is_told_once_and_is_caught_up_where_all_is_copied_and_there() -> None:
    lines = EventLines()
    assert list(lines.rested(Rest(SINCE))) == []  # nothing has begun
    list(lines.began(manifest(1, Copy(ORDERS, done=True))))
    assert named(lines.rested(Rest(SINCE, absent={"-80": SINCE}))) == [("rest", at(1), None)]
    list(lines.committed(report(manifest(2, Copy(ORDERS, done=True)))))
    assert named(lines.rested(Rest(SINCE))) == [("rest", at(2), None), ("caught_up", at(2), None)]
    assert list(lines.rested(Rest(SINCE))) == []
    list(lines.committed(report(manifest(3, Copy(ORDERS)))))
    assert named(lines.rested(Rest(SINCE))) == [("rest", at(3), None)]
    list(lines.committed(report(manifest(4, Copy(ORDERS, done=True)))))
    assert named(lines.caught_up()) == [("caught_up", at(4), None)]
    assert list(lines.caught_up()) == []


def test_a_shard_that_goes_away_and_comes_back() -> None:
    lines = EventLines()
    away = Trouble("-80", SINCE, 3, "ConnectionLost", "refused", "the shard")
    fails, epoch = Trouble("80-", SINCE, 1, "SourceError", "no"), Trouble("", SINCE, 1, "CutMissed", "torn")
    assert list(lines.in_trouble((away,))) == [
        {
            "event": "shard",
            "shard": "-80",
            "state": "away",
            "since": "2023-11-14T22:13:20Z",
            "error": "ConnectionLost",
            "message": "refused",
        }
    ]
    later = replace(away, tries=9)
    assert [(one["event"], one.get("state")) for one in lines.in_trouble((epoch, later, fails))] == [
        ("retry", None),
        ("shard", "fails"),
    ]
    assert list(lines.in_trouble((fails,))) == [{"event": "shard", "shard": "-80", "state": "back"}]


def test_a_state_store_that_goes_away_and_comes_back() -> None:
    lines = EventLines()
    away = Trouble("", SINCE, 1, "StateAway", "refused", "the state store")
    epoch = Trouble("", SINCE, 1, "CutMissed", "torn")
    (event,) = lines.in_trouble((away,))
    assert (event["event"], event["what"], event["state"], event["message"]) == (
        "away",
        "the state store",
        "away",
        "refused",
    )
    assert [one["event"] for one in lines.in_trouble((replace(away, tries=2), epoch))] == ["retry"]
    assert list(lines.in_trouble((epoch,))) == [{"event": "away", "what": "the state store", "state": "back"}]


def test_a_shard_that_is_throttled() -> None:
    lines = EventLines()
    busy = Throttled("-80", SINCE, Breach(Check.THREADS_RUNNING, "is 9, and is to be at most 5", 9, 5))
    busier = replace(busy, breach=replace(busy.breach, said="is 10, and is to be at most 5", value=10))
    (event,) = lines.throttled((busy,))
    assert event["reason"] == "threads_running is 9, and is to be at most 5"
    assert list(lines.throttled((busier,))) == []
    assert list(lines.throttled(())) == [{"event": "throttle", "shard": "-80", "state": "copies"}]


def test_what_comes_one_by_one() -> None:
    lines = EventLines()
    done, refused = Answer(True, "paused", SINCE), Answer(False, "it is following", SINCE)
    order = Order(Action.PAUSE, "ann@ops", SINCE, ORDERS)
    assert list(lines.answered((Kept(1, order, done), Kept(2, order, refused)))) == [
        {
            "event": "order",
            "number": number,
            "order": "pause shop.orders",
            "user": "ann@ops",
            "state": state,
            "answer": said,
        }
        for number, state, said in ((1, "done", "paused"), (2, "refused", "it is following"))
    ]
    assert list(lines.settled((ORDERS, ITEMS))) == [
        {"event": "settled", "tables": ["shop.items", "shop.orders"]}
    ]
    assert list(lines.held(Held({}, SINCE))) == [{"event": "sessions", "state": "waits", "held": {}}]
    assert list(lines.held(Held({"-80": 3}))) == [{"event": "sessions", "state": "holds", "held": {"-80": 3}}]
    assert list(lines.leased(4)) == [{"event": "lease", "fence": 4}]
    assert list(lines.doing("looking")) == [{"event": "doing", "what": "looking"}]
    assert list(lines.noticed((NotifyEvent.RETENTION, "soon"))) == [
        {"event": "notice", "notice": "retention", "message": "soon"}
    ]
    assert list(lines.noticed((NotifyEvent.STALE, "told by the table's own event"))) == []
