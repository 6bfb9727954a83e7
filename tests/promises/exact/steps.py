"""A feed that is run and stopped again and again, so that all that is written between two runs is one epoch.

The tasks of an epoch run one after another in this process, pickled as on their way through Spark.
"""

import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from catchment.api.read import read
from catchment.config import Feed, load
from catchment.feed import runner
from catchment.feed.runner import run_feed
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.upkeep import turns
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import make_feed
from tests.world.engines import Here
from tests.world.settled import settled

Rows = list[tuple[Any, ...]]
RENEWALS_MAX = 10
# Take all rows of a table, by statements of which one is not followed: the table is copied anew.
EMPTIES = ("DELETE FROM t", "ALTER TABLE t ORDER BY id")


def run_here(patch: pytest.MonkeyPatch) -> Here:
    """Have `run_feed` and `verify` run their tasks in this process, without Java, and settle nothing."""
    here = Here()
    patch.setattr(turns.LakeUpkeep, "turn", lambda upkeep: None)
    patch.setattr(turns.LakeUpkeep, "stop", lambda upkeep, *, hurry: None)
    patch.setattr(runner, "engine_of", lambda *_, **__: here)
    patch.setattr("catchment.feed.compare.engine_of", lambda *_, **__: here)
    return here


def caught_up(
    patch: pytest.MonkeyPatch, directory: Path, servers: Servers, schema: str, *statements: str
) -> "Steps":
    """A feed of what statements make on every shard, that runs in this process and has caught up."""
    run_here(patch)
    steps = Steps(directory, servers, schema)
    steps.everywhere(*statements)
    steps.run()
    return steps


class Died(Exception):
    """What ends a run at a place where it might be killed."""


class Steps:
    """A feed of all tables of one schema of its shards."""

    def __init__(self, directory: Path, servers: Servers, schema: str, **options: str) -> None:
        self.servers = servers
        self.schema = schema
        self.file = directory / "feed.yaml"
        make_feed(directory, servers, schema, chunk_rows=1000, interval="50ms")
        self.set(**options)

    @property
    def feed(self) -> Feed:
        """The feed as its file describes it now."""
        return load(self.file)

    def set(self, **options: object) -> None:
        """Change lines of the feed file."""
        described = yaml.safe_load(self.file.read_text())
        self.file.write_text(yaml.safe_dump({**described, **options}))

    def run(self, *leave: str) -> None:
        """Run the feed until it has caught up, without the tables that `leave`; raises what ended it."""
        run_feed(
            self.feed,
            until_caught_up=True,
            stop=threading.Event(),
            leave=[TableId(self.schema, name) for name in leave],
        )

    def everywhere(self, *statements: str) -> None:
        """The same on every shard."""
        for one in self.servers:
            self.sql(one, *statements)

    def die_again_and_again(self, fault: Fault, times: int) -> None:
        """Run the feed, which dies the first time that it comes to a place, then the second time, and so on.

        It ends when the feed comes through, or after so many runs.
        """
        for number in range(1, times + 1):
            left = [number]

            def die(at: Fault, left: list[int] = left) -> None:
                left[0] -= at is fault
                if left[0] == 0:
                    raise Died

            with suppress(Died):
                run_feed(self.feed, until_caught_up=True, stop=threading.Event(), fault=die)
                return

    def renew(self, *proof: str) -> None:
        """Run the feed until no table is stale, and settle what waits for it. `proof`: statements on other tables. They
        show more of the log visible: a server at rest need not do so at once."""
        epochs = EpochsTable(self.feed.sink.path, self.feed.name)
        for _ in range(RENEWALS_MAX):
            self.run()
            row = epochs.newest()
            assert row is not None
            if not row.manifest.stale:
                return
            if any(one.settles for one in row.manifest.stale):
                settled(self.feed)
            for shard in self.servers:
                self.sql(shard, *proof)
        raise AssertionError("tables are still stale")

    def enter(self, table: str, *proof: str) -> None:
        """Run the feed until a table has entered. `proof`: as `renew` has it. Where the log went to a new file just
        now, a checkpoint has to follow, too."""
        epochs = EpochsTable(self.feed.sink.path, self.feed.name)
        for _ in range(RENEWALS_MAX):
            self.everywhere(*proof)
            self.run()
            row = epochs.newest()
            assert row is not None
            if any(shape.table.name == table for shape in row.manifest.shapes):
                return
        raise AssertionError(f"{table} has not entered")

    def must_stop(self, caplog: pytest.LogCaptureFixture, table: str, why: str) -> None:
        """Run the feed; DDL has to make a table stale, for a reason that matches. Others do not wait for it."""
        self.run()
        stale = rf"{self.schema}\.{table}[ ,)].* stale \(readers see epoch .*?(?:{why})"
        assert any(re.search(stale, message, re.DOTALL) for message in caplog.messages), caplog.messages

    def sql(self, shard: str, *statements: str) -> None:
        """Run statements in the schema."""
        self.servers[shard].sql(f"USE {self.schema}", *statements)

    def columns(self, shard: str, table: str) -> tuple[str, ...]:
        """The columns that a table has now."""
        return tuple(
            str(row[0]) for row in self.servers[shard].sql(f"SHOW COLUMNS FROM {self.schema}.{table}")
        )

    def lake(self, table: str, *columns: str) -> Rows:
        """A table's rows: shard and columns, which the lake must have."""
        rows = read(self.feed, f"{self.schema}.{table}").arrow().to_pylist()
        return sorted(tuple(row[c] for c in ("_shard", *columns)) for row in rows)

    def source(self, table: str, *columns: str) -> Rows:
        """The same from the shards; those that do not have the table have no rows."""
        found: Rows = []
        for shard, server in self.servers.items():
            if server.sql(f"SHOW TABLES FROM {self.schema} LIKE '{table}'"):
                rows = server.sql(f"SELECT {', '.join(columns)} FROM {self.schema}.{table}")
                found += [(shard, *row) for row in rows]
        return sorted(found)

    def must_be_equal(self, table: str, *columns: str) -> None:
        """Run the feed, and compare."""
        self.run()
        assert self.lake(table, *columns) == self.source(table, *columns)
