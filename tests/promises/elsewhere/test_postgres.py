"""A table of PostgreSQL that the example keeps: equal to the source at every version, whatever is killed."""

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from catchment.demo.workload import load
from tests.conftest import Shards, had
from tests.promises.elsewhere.job import Job, running
from tests.promises.elsewhere.verdict import Court, Look
from tests.world.judge import source_rows
from tests.world.patience import until
from tests.world.servers.postgres import USER, PrivatePostgres
from tests.world.workload import create_random_tables, random_writers
from tests.world.written_on import written_on

NAMES = ("-80", "80-")
ROWS = 600
# As in docs/elsewhere.md.
TABLES = """
CREATE TABLE versions (name TEXT PRIMARY KEY, version BIGINT NOT NULL);
CREATE TABLE orders (
    _shard TEXT, id BIGINT, customer TEXT, amount NUMERIC(12,2), discount NUMERIC(5,4), note TEXT, status SMALLINT,
    placed_at TIMESTAMP, shipped_on DATE, PRIMARY KEY (_shard, id));
INSERT INTO versions VALUES ('orders', 0)
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
# One statement sees one state.
LOOK = """
SELECT json_build_object('version', (SELECT version FROM versions),
    'rows', (SELECT coalesce(json_agg(o), '[]') FROM orders AS o))
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PrivatePostgres]:
    with had(PrivatePostgres) as server:
        yield server


def look(postgres: PrivatePostgres) -> Look:
    found = json.loads(postgres.sql(LOOK), parse_float=Decimal)
    return Look(found["version"], {(row["_shard"], (row["id"],)): _row(row) for row in found["rows"]})


def _row(row: dict[str, Any]) -> dict[str, Any]:
    row["placed_at"] = datetime.fromisoformat(row["placed_at"])
    row["shipped_on"] = row["shipped_on"] and date.fromisoformat(row["shipped_on"])
    return {name: value for name, value in row.items() if name != "_shard"}


def feed_of(directory: Path, shards: Shards) -> Path:
    described = {
        "name": "elsewhere",
        "source": {
            "keyspace": "shop",
            "shards": [
                {"name": name, "host": s.host, "port": s.port, "user": "catchment", "password": s.password}
                for name, s in zip(NAMES, shards, strict=True)
            ],
        },
        "tables": ["*.*"],
        "sink": {"path": str(directory / "lake")},
        "copy": {"chunk_rows_max": 5, "group_time": "0s"},
    }
    file = directory / "feed.yaml"
    file.write_text(yaml.safe_dump(described))
    return file


def awaited(holds: Callable[[], bool], job: Job) -> None:
    """Wait until something holds, while the job runs."""

    def runs_and_holds() -> bool:
        job.must_run()
        return holds()

    until("what the test waits for", runs_and_holds, seen=job.words)


def next_version(postgres: PrivatePostgres, job: Job) -> None:
    """Wait for another version than there is."""
    before = version(postgres)
    awaited(lambda: version(postgres) > before, job)


def version(postgres: PrivatePostgres) -> int:
    return int(postgres.sql("SELECT version FROM versions"))


def uncount(checkpoint: Path) -> None:
    """Leave the checkpoint as a kill does between the target's transaction and Spark's own count of the micro-batch."""
    offsets, commits = (
        max(int(file.name) for file in (checkpoint / name).glob("[0-9]*")) for name in ("offsets", "commits")
    )
    if offsets == commits:
        for name in (f"{commits}", f".{commits}.crc"):
            (checkpoint / "commits" / name).unlink()


@pytest.mark.long
@pytest.mark.mariadb("its writers do what only MariaDB's log shows")
def test_equal_at_every_version_under_writes_and_kills(
    shards: Shards, postgres: PrivatePostgres, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    """Killed behind a transaction that Spark has not counted, which comes again, and in the midst of one."""
    schema = fresh_schema(*shards)
    create_random_tables(shards, schema)
    for index, server in enumerate(shards):
        load(server, schema, ROWS, index=index, count=2)
    servers, table = dict(zip(NAMES, shards, strict=True)), f"{schema}.orders"
    checkpoint, said = tmp_path / "checkpoint", tmp_path / "said"
    court = Court(servers, table, "id", checkpoint)
    postgres.sql(TABLES)
    arguments = [str(feed_of(tmp_path, shards)), table, "id", postgres.url, str(checkpoint)]
    login = {"PGUSER": USER, "PGPASSWORD": postgres.password}
    start = partial(running, "postgres_by_jdbc", arguments, login, said)
    looks: list[Look] = []

    def follow(job: Job, versions: int) -> None:
        for _ in range(versions):
            next_version(postgres, job)
            looks.append(look(postgres))

    with random_writers(shards, schema, seed=31, rate=8.0, keys=2 * ROWS) as writers:
        written_on(shards)  # the first cut lies after the places where the oracles began
        with start() as job:
            follow(job, 3)
        looks.append(look(postgres))
        uncount(checkpoint)
        with start() as job:
            follow(job, 1)
            with postgres.held("LOCK TABLE orders IN SHARE MODE"):
                awaited(lambda: postgres.sql(WAITING) == "1\n", job)
                job.kill()
        looks.append(look(postgres))
        with start() as job:
            follow(job, 1)
            court.judge(looks)
            with writers.paused():
                want = source_rows(servers, table, ("id",))
                awaited(lambda: look(postgres).rows == want, job)
    print(court.judged, "looks,", court.copying, "at shards in the midst of their copy")
    assert court.copying
