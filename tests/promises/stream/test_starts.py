"""Where a stream begins: every example of seed 004, with the events that come."""

import asyncio
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import catchment
from catchment.model.errors import CatchmentError, ConfigError, Unsupported
from catchment.serve.stream.alignment import _SILENT_SECONDS
from catchment.serve.stream.events import (
    Batch,
    Begin,
    Commit,
    CopyCompleted,
    Event,
    Field,
    Heartbeat,
    LastPk,
    Restart,
    Row,
    VGtid,
)
from catchment.serve.stream.flags import AddedShards, Flags
from catchment.serve.stream.stream import Stream
from catchment.serve.stream.vgtid import Start
from tests.promises.stream.conftest import Servers
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import copies_done, has, rows, source_of, until_copied, up_to, vgtid_of
from tests.suite.drawn import drawn
from tests.world.patience import until
from tests.world.servers.gtids import all_gtids, newest_gtid


def changed(servers: Servers, schema: str, value: str) -> None:
    for server in servers.values():
        server.sql(f"UPDATE t1 SET val = '{value}' WHERE id = 1", database=schema)


def test_current_from_two_shards(servers: Servers, schema: str) -> None:
    """ "stream from current position from two shards": what is there already is not told, nor what others write."""
    changed(servers, schema, "before")
    vgtid = [{"keyspace": "ks", "shard": shard, "gtid": "current"} for shard in ("-40", "c0-")]
    with catchment.stream(source_of(servers), vgtid=vgtid, rules=[f"{schema}.*"]) as stream:
        assert isinstance(next(stream), VGtid)
        changed(servers, schema, "after")
        found = up_to(stream, has("after", 2))
    assert stream.source == ["ks/-40", "ks/c0-"]
    for shard in ("-40", "c0-"):
        mine = [event for event in found if getattr(event, "shard", "") == shard]
        assert [type(event) for event in mine] == [Begin, Field, Row, Commit]
        gtids = {event.gtid for event in mine if isinstance(event, Begin | Commit)}
        assert gtids == {newest_gtid(servers[shard])}
        assert rows(found, shard) == [("t1", (1, "before"), (1, "after"))]
    assert not rows(found, "40-c0")


def test_a_position_of_all_shards_of_a_keyspace(servers: Servers, schema: str) -> None:
    """One position may be named for a keyspace. Where its shards are servers of their own, each has one of its own."""
    shard = {"-40": servers["-40"]}
    gtid = all_gtids(servers["-40"])
    changed(shard, schema, "after")
    flavor = "MySQL56/" if ":" in gtid else "MariaDB/"
    vgtid = [{"keyspace": "ks", "gtid": flavor + gtid}]
    with catchment.stream(source_of(shard), vgtid=vgtid, rules=[f"{schema}.*"]) as stream:
        found = up_to(stream, has("after"))
    assert rows(found) == [("t1", (1, "a"), (1, "after"))]


def test_current_from_all_keyspaces(servers: Servers, schema: str) -> None:
    first, second = ({"-": servers["-40"]}, {"-": servers["c0-"]})
    sources = [source_of(first, "one"), source_of(second, "two")]
    with catchment.stream(sources, vgtid=Start(gtid="current"), rules=[f"{schema}.*"]) as stream:
        assert stream.source == ["one/-", "two/-"]
        next(stream)
        changed(servers, schema, "after")
        found = up_to(stream, has("after", 2))
    assert {event.keyspace for event in found if isinstance(event, Row)} == {"one", "two"}


@pytest.mark.promise("a stream begins with a copy of the tables that it names")
def test_copy_of_two_tables_from_two_shards(servers: Servers, schema: str) -> None:
    vgtid = [{"keyspace": "ks", "shard": shard, "gtid": ""} for shard in ("-40", "40-c0")]
    with catchment.stream(source_of(servers), vgtid=vgtid, rules=[f"{schema}.t1", f"{schema}.t2"]) as stream:
        found = until_copied(stream)
        changed(servers, schema, "after")
        later = up_to(stream, has("after", 2))
    for shard in ("-40", "40-c0"):
        assert sorted(rows(found, shard)) == [
            ("t1", None, (1, "a")),
            ("t1", None, (2, "b")),
            ("t2", None, (3, "c")),
        ]
        mine = [
            event for event in found if isinstance(event, LastPk | CopyCompleted) and event.shard == shard
        ]
        assert {type(event) for event in mine} == {LastPk, CopyCompleted}
    assert isinstance(found[-1], VGtid)
    assert all(copies_done(found[-1].text))
    assert rows(later, "-40") == rows(later, "40-c0") == [("t1", (1, "a"), (1, "after"))]
    assert not rows(later, "c0-")


def test_copy_of_listed_tables(servers: Servers, schema: str) -> None:
    """A list of tables: these are copied, and others are followed from now on. On a MariaDB at rest the last
    transaction is not proven visible."""
    changed(servers, schema, "before")
    vgtid = [Start(gtid="", tables=("t2",))]
    with catchment.stream(source_of(servers), vgtid=vgtid, rules=[f"{schema}.*"]) as stream:
        found = until_copied(stream)
        changed(servers, schema, "after")
        later = up_to(stream, has("after", 3))
    assert rows(found) == [("t2", None, (3, "c"))] * 3
    assert rows(later) == [("t1", (1, "before"), (1, "after"))] * 3


@pytest.mark.parametrize("first", [(), (1, 2)])
def test_copy_of_listed_tables_while_they_are_written(
    servers: Servers, schema: str, first: tuple[int, ...]
) -> None:
    """Rows that come while the stream begins are copied, or told: of a table without rows, too."""
    server = servers["-40"]
    server.sql("DELETE FROM t2", *(f"INSERT INTO t2 VALUES ({key}, '')" for key in first), database=schema)
    over, written = threading.Event(), [0]

    def write() -> None:
        with closing(server.connect(database=schema)) as session, session.cursor() as cursor:
            for key in itertools.count(100):
                cursor.execute(f"INSERT INTO t2 VALUES ({key}, '')")
                cursor.execute(f"UPDATE t1 SET val = '{key}'")
                written[0] = key
                if over.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    mirror = Mirror({f"{schema}.{table}": ("id",) for table in ("t1", "t2")})
    try:
        until("some rows", lambda: written[0] > 120)
        vgtid = [Start(gtid="", tables=("t2",))]
        begun = written[0]
        with catchment.stream(source_of({"-": server}), vgtid=vgtid, rules=[f"{schema}.*"]) as stream:
            for event in until_copied(stream):
                mirror.take(event)
                if isinstance(event, Row) and event.table.name == "t1" and event.after is not None:
                    assert int(event.after["val"]) >= begun, "no row of before the start"
            over.set()
            writer.join()
            if not any(row["id"] == written[0] for row in mirror.rows["-", f"{schema}.t2"].values()):
                for event in up_to(stream, has(written[0])):
                    mirror.take(event)
    finally:
        over.set()
        writer.join()
    have = sorted(int(row["id"]) for row in mirror.rows["-", f"{schema}.t2"].values())
    assert have == [*first, *range(100, written[0] + 1)]


def test_the_entire_database(servers: Servers, schema: str) -> None:
    """`/.*/` takes all tables of all keyspaces; here those of one schema, since others share the servers."""
    with catchment.stream(source_of(servers), vgtid="", rules=[rf"/{schema}\..*/"]) as stream:
        found = until_copied(stream)
    assert len(rows(found)) == 9
    fields = [event for event in found if isinstance(event, Field)]
    assert {(event.shard, event.table.name) for event in fields} == {
        (s, t) for s in servers for t in ("t1", "t2")
    }
    assert fields[0].key == ("id",)
    assert [column.name for column in fields[0].columns] == ["id", "val"]


@pytest.mark.promise("a stream resumes from its last vgtid")
def test_resumed_from_the_last_vgtid(servers: Servers, schema: str) -> None:
    with catchment.stream(source_of(servers), rules=[f"{schema}.*"]) as stream:
        text = vgtid_of(until_copied(stream)[-1])
    changed(servers, schema, "while away")
    with catchment.stream(source_of(servers), rules=[f"{schema}.*"], vgtid=text) as stream:
        found = up_to(stream, has("while away", 3))
    assert rows(found) == [("t1", (1, "a"), (1, "while away"))] * 3


def test_resumed_with_other_rules(servers: Servers, schema: str) -> None:
    """A table that is chosen only now is copied, and one that is chosen no more is told of no more."""
    with catchment.stream(source_of(servers), rules=[f"{schema}.t1"]) as stream:
        text = vgtid_of(until_copied(stream)[-1])
    with catchment.stream(source_of(servers), rules=[f"{schema}.t2"], vgtid=text) as stream:
        found = until_copied(stream)
        changed(servers, schema, "of t1")
        for server in servers.values():
            server.sql("UPDATE t2 SET val = 'of t2'", database=schema)
        later = up_to(stream, has("of t2", 3))
    assert rows(found) == [("t2", None, (3, "c"))] * 3
    assert rows(later) == [("t2", (3, "c"), (3, "of t2"))] * 3


@pytest.mark.promise("a stream that goes on copies the shards that were added to its source, or is refused")
def test_a_shard_that_was_added_to_the_source(servers: Servers, schema: str) -> None:
    """It is refused, copied or left out, as the client chooses; the vgtids that follow know which."""
    two, rules = {name: servers[name] for name in ("-40", "40-c0")}, [f"{schema}.*"]
    with catchment.stream(source_of(two), rules=rules) as stream:
        text = vgtid_of(until_copied(stream)[-1])
    with pytest.raises(ConfigError, match=r"has got ks/c0- since: with flags\.added_shards: copy"):
        catchment.stream(source_of(servers), rules=rules, vgtid=text)
    changed(servers, schema, "while away")
    chosen = Flags(added_shards=AddedShards.COPY)
    with catchment.stream(source_of(servers), rules=rules, vgtid=text, flags=chosen) as stream:
        begun = up_to(stream, lambda event: isinstance(event, VGtid))
        found = until_copied(stream)
        changed(servers, schema, "after")
        later = up_to(stream, has("after", 3))
    restarts = [event for event in begun if isinstance(event, Restart)]
    assert [(one.shard, one.table.name) for one in restarts] == [("c0-", "t1"), ("c0-", "t2")]
    assert {one.reason for one in restarts} == {"the shard was added to the source"}
    assert rows(found, "-40") == rows(found, "40-c0") == [("t1", (1, "a"), (1, "while away"))]
    assert sorted(rows(found, "c0-")) == [
        ("t1", None, (1, "while away")),
        ("t1", None, (2, "b")),
        ("t2", None, (3, "c")),
    ]
    assert len(rows(later)) == 3
    with catchment.stream(source_of(servers), rules=rules, vgtid=vgtid_of(later[-1])) as stream:
        assert stream.source == ["ks/-40", "ks/40-c0", "ks/c0-"]
    chosen = Flags(added_shards=AddedShards.IGNORE)
    with catchment.stream(source_of(servers), rules=rules, vgtid=text, flags=chosen) as stream:
        left_out = vgtid_of(next(stream))
    with catchment.stream(source_of(servers), rules=rules, vgtid=left_out) as stream:
        assert stream.source == ["ks/-40", "ks/40-c0"]


def test_a_stream_of_some_shards_goes_on_with_these(servers: Servers, schema: str) -> None:
    """The others were there when it began, so that they are none that were added."""
    vgtid = [{"keyspace": "ks", "shard": "-40", "gtid": "current"}]
    with catchment.stream(source_of(servers), vgtid=vgtid, rules=[f"{schema}.*"]) as stream:
        text = vgtid_of(next(stream))
    with catchment.stream(source_of(servers), vgtid=text, rules=[f"{schema}.*"]) as stream:
        assert stream.source == ["ks/-40"]


def test_some_shards_now_and_others_from_the_first_row(servers: Servers, schema: str) -> None:
    """Shards that stand at now need not wait there for those that are copied."""
    vgtid = [Start("ks", "-40", "current"), Start("ks", "40-c0", ""), Start("ks", "c0-", "")]
    flags, begun = Flags(minimize_skew=True), time.monotonic()
    with catchment.stream(source_of(servers), vgtid=vgtid, rules=[f"{schema}.*"], flags=flags) as stream:
        stood = time.monotonic() - begun
        found = until_copied(stream)
    assert {event.shard for event in found if isinstance(event, Row)} == {"40-c0", "c0-"}
    assert stood < _SILENT_SECONDS, "it waited as for shards that do not answer"


def test_empty_tables_are_copied_at_once(servers: Servers, fresh_schema: Callable[..., str]) -> None:
    """A client that waits for the end of the copy need not know that there was nothing to copy."""
    server = servers["-40"]
    schema = fresh_schema(server)
    server.sql("CREATE TABLE nothing (id INT PRIMARY KEY)", database=schema)
    with catchment.stream(source_of({"-": server}), rules=[f"{schema}.*"]) as stream:
        found = until_copied(stream)
    tables = [event.table and event.table.name for event in found if isinstance(event, CopyCompleted)]
    assert tables == ["nothing", None]


NEEDED = """
import sys
for name in ("pyspark", "py4j", "rich", "click", "prometheus_client", "deltalake", "duckdb"):
    sys.modules[name] = None
import json, catchment
from catchment.serve.stream.events import CopyCompleted, Row
rows = 0
with catchment.stream(json.loads(sys.argv[1]), rules=[sys.argv[2]]) as stream:
    for event in stream:
        rows += isinstance(event, Row)
        if isinstance(event, CopyCompleted) and event.table is None:
            break
print(rows)
"""


def test_a_program_needs_no_spark_and_no_lake(servers: Servers, schema: str) -> None:
    """What the extra `stream` does not have cannot be imported."""
    given = [json.dumps(source_of(servers)), f"{schema}.*"]
    run = subprocess.run([sys.executable, "-c", NEEDED, *given], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("9", "")


def test_async(servers: Servers, schema: str) -> None:
    """Waits that are cancelled at random moments lose no event, and the stream ends while one of them goes on."""
    rng = random.Random(drawn("cancelled waits", 1 << 32))

    async def next_of(stream: Stream) -> Event | None:
        try:
            return await asyncio.wait_for(anext(stream), rng.choice((0.001, 0.01, 0.3)))
        except TimeoutError:
            return None

    async def pulled() -> list[Event]:
        found: list[Event] = []
        async with catchment.stream(source_of(servers), rules=[f"{schema}.*"]) as stream:
            while not any(isinstance(event, CopyCompleted) and event.table is None for event in found):
                found += [event] if (event := await next_of(stream)) is not None else []
            for number in range(20):
                for server in servers.values():
                    server.sql(f"INSERT INTO t1 VALUES ({100 + number}, 'n')", database=schema)
                found += [event] if (event := await next_of(stream)) is not None else []
            while len(rows(found)) < 9 + 20 * len(servers):
                found += [event] if (event := await next_of(stream)) is not None else []
            with suppress(TimeoutError):
                while True:  # until nothing more is there: the last pull goes on when the stream ends
                    found.append(await asyncio.wait_for(anext(stream), 0.001))
        return found

    found = asyncio.run(pulled())
    keys = [after[0] for _, _, after in rows(found) if after[0] >= 100]
    assert sorted(keys) == sorted(list(range(100, 120)) * len(servers))
    begins = [event for event in found if isinstance(event, Begin)]
    assert len(begins) == sum(isinstance(event, Commit) for event in found)


def test_heartbeats(servers: Servers, schema: str) -> None:
    flags = Flags(heartbeat_interval=0.3)
    with catchment.stream(source_of(servers), vgtid="current", rules=[f"{schema}.*"], flags=flags) as stream:
        assert [type(next(stream)) for _ in range(3)] == [VGtid, Heartbeat, Heartbeat]


def test_batches(servers: Servers, schema: str) -> None:
    with catchment.stream(source_of(servers), rules=[f"{schema}.*"]) as stream:
        batches = stream.batches()
        copied: dict[tuple[str, str], int] = {}
        for part in batches:
            if isinstance(part, Batch):
                assert set(part.rows.column("_change_type").to_pylist()) == {"insert"}
                copied[part.shard, part.table.name] = part.rows.num_rows
            if isinstance(part, VGtid) and all(copies_done(part.text)):
                break
        assert copied == {(s, t): n for s in servers for t, n in (("t1", 2), ("t2", 1))}
        changed(servers, schema, "after")
        found = []
        for part in batches:
            if isinstance(part, Batch):
                found += part.rows.select(["id", "val", "_change_type", "_shard", "_gtid"]).to_pylist()
            if len(found) == 6:
                break
    told = {(row["val"], row["_change_type"]) for row in found}
    assert told == {("a", "update_preimage"), ("after", "update_postimage")}
    assert {row["_gtid"] for row in found} == {newest_gtid(server) for server in servers.values()}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"vgtid": [{"keyspace": "other", "gtid": "current"}]},
            "the source has no shard any of keyspace other",
        ),
        ({"vgtid": [{"shard": "-40", "gtid": ""}, {"gtid": "current"}]}, "ks/-40 has more than one position"),
        ({"vgtid": [{"gtid": "current", "pos": 3}]}, "a position has no pos"),
        ({"vgtid": [{"gtid": "current", "tables": ["t1"]}]}, "t1 cannot be copied from current"),
        ({"vgtid": [{"gtid": "", "tables": ["t9"]}]}, "the table t9 to copy is none of those"),
        ({"vgtid": json.dumps({"version": 9, "cut": {}})}, "it has version 9"),
        ({"vgtid": json.dumps({"cut": {"epoch": 1}})}, "not one that a stream gave"),
        ({"vgtid": "[1"}, "shard ks/"),
        ({"rules": ["nothing."]}, "nothing. is not of the form"),
        ({"rules": ["no_such.*"]}, "no_such.*no shard has such a table"),
    ],
)
def test_what_is_refused(servers: Servers, schema: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why.replace("[", r"\[")):
        catchment.stream(source_of(servers), **{"rules": [f"{schema}.*"], **given})


def test_tables_that_cannot_be_streamed(
    servers: Servers, schema: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = servers["-40"]
    server.sql(
        "CREATE TABLE away (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, t INT, CONSTRAINT f FOREIGN KEY (t) REFERENCES away (id) "
        "ON DELETE CASCADE)",
        "CREATE TABLE keyless (n INT)",
        database=schema,
    )
    with pytest.raises(Unsupported) as refused:
        catchment.stream(source_of({"-": server}), rules=[f"{schema}.*", f"!{schema}.away"])
    assert "its foreign key f ON DELETE CASCADE changes rows that are in no log" in str(refused.value)
    assert f"{schema}.away is not among the tables" in str(refused.value)
    assert f"{schema}.keyless" in str(refused.value)
    rules = [f"{schema}.*", f"!{schema}.away", f"!{schema}.child", f"!{schema}.keyless"]
    with catchment.stream(source_of({"-": server}), rules=rules) as stream:
        assert len(rows(until_copied(stream))) == 3
    file = tmp_path / "feed.yaml"
    described = {
        "name": "f",
        "source": source_of({"-": server}),
        "tables": [f"{schema}.*"],
        "sink": {"path": "lake"},
    }
    file.write_text(yaml.safe_dump({**described, "unusable": "skip"}))
    with catchment.stream(file, rules=[f"{schema}.*", f"!{schema}.away"]) as stream:
        assert len(rows(until_copied(stream))) == 3
    assert f"the stream leaves out {schema}.child: its foreign key f" in caplog.text
    assert f"the stream leaves out {schema}.keyless" in caplog.text
    with pytest.raises(Unsupported, match="keyless"):
        catchment.stream(file, rules=[f"{schema}.keyless", f"{schema}.child"])


def test_another_source_than_the_vgtid_is_of(servers: Servers, schema: str) -> None:
    with catchment.stream(source_of(servers), vgtid="current", rules=[f"{schema}.*"]) as stream:
        text = vgtid_of(next(stream))
    with pytest.raises(CatchmentError, match="it stands for the shards"):
        catchment.stream(source_of({"-40": servers["-40"]}), vgtid=text, rules=[f"{schema}.*"])
    moved = {"-40": servers["40-c0"], "40-c0": servers["-40"], "c0-": servers["c0-"]}
    with pytest.raises(CatchmentError, match="is now server_id"):
        catchment.stream(source_of(moved), vgtid=text, rules=[f"{schema}.*"])
