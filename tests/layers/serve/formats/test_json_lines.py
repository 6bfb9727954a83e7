"""Events as JSON."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

from catchment.model.table import TableId
from catchment.serve.formats.json_lines import JsonLines
from catchment.serve.stream.events import Commit, Ddl, Event, Heartbeat, LastPk, VGtid
from tests.layers.serve.formats.told import lines_of

T = TableId("shop", "orders")


def test_the_type_is_first() -> None:
    events: list[Event] = [
        Commit("shop", "-80", "0-1-5", 7),
        LastPk("shop", "-80", T, (1, "a")),
        VGtid("{}", 9),
    ]
    assert lines_of(JsonLines(), events) == [
        '{"type":"commit","keyspace":"shop","shard":"-80","gtid":"0-1-5","time":7}',
        '{"type":"last_pk","keyspace":"shop","shard":"-80","table":{"schema":"shop","name":"orders"},"key":[1,"a"]}',
        '{"type":"vgtid","text":"{}","time_us":9}',
    ]


def test_values_that_a_statement_gave() -> None:
    added = {
        "d": Decimal("0E-10"),
        "b": b"\xff",
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4, 5),
        "ts": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "n": None,
    }
    (line,) = lines_of(JsonLines(), [Ddl("shop", "-80", T, "ALTER", added)])
    assert json.loads(line)["added"] == {
        "d": "0.0000000000",
        "b": "/w==",
        "day": "2026-01-02",
        "at": "2026-01-02T03:04:05.000000",
        "ts": "2026-01-02T03:04:05.000000Z",
        "n": None,
    }


def test_heartbeats_have_no_line() -> None:
    assert lines_of(JsonLines(), [Heartbeat(1)]) == []
