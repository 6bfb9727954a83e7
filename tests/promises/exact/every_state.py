"""Tables of one feed in every state at once, and what befalls each of them while runs of the feed die."""

import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import catchment
from catchment.feed.runner import run_feed
from catchment.feed.verify import verify
from catchment.model.chunk import Chunk
from catchment.model.order import Action, Kept, Order
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from catchment.state import orders
from catchment.state.faults import Fault
from catchment.state.store import Store
from tests.promises.exact.conftest import Servers
from tests.promises.exact.manifests import newest
from tests.promises.exact.migrations import CUT_OVER, FIRST_CHUNK, MAKE, MEANWHILE, SECOND_CHUNK, follow, of
from tests.promises.exact.steps import Died, Steps
from tests.world.engines import Here
from tests.world.planted import plant, with_values, without
from tests.world.settled import settled

ROWS = 12
KEY = ("id", "n")
MADE = "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)"
FILLED = f"INSERT INTO {{t}} VALUES {', '.join(f'({key}, {key * 10})' for key in range(1, ROWS + 1))}"
# A run dies when it comes to the place for the first time, the next one at the second, then later and later.
TIMES = (1, 2, 3, 5, 8, 13, 21, 34)

TOOL = (MAKE, [FIRST_CHUNK], [*MEANWHILE, SECOND_CHUNK])


@dataclass(frozen=True)
class Life:
    """A table, `{t}` in its statements. `made`: on every shard before the feed begins. `first`: on every shard, or
    `on_first` on the shard -80 alone, in front of the runs that die. `second`, `on_second`: the same, of a later round,
    in which the other shard follows; `at_last` on the shard -80 then.
    `columns`: what it has in the end. `renewed`: how many copies of it begin in these rounds. `told`: whether rows of
    such a copy come from the log, so that none is read from the source."""

    made: Sequence[str] = (MADE, FILLED)
    first: Sequence[str] = ()
    on_first: Sequence[str] = ()
    second: Sequence[str] = ()
    on_second: Sequence[str] = ()
    at_last: Sequence[str] = ()
    columns: tuple[str, ...] = KEY
    renewed: int = 0
    told: bool = False


LIVES: dict[str, Life] = {
    "followed": Life(first=["UPDATE {t} SET n = n + 1 WHERE id < 5", "DELETE FROM {t} WHERE id = 6"]),
    "renewed": Life(
        first=["UPDATE {t} SET n = 5 WHERE id = 3", "ALTER TABLE {t} ORDER BY id", "DELETE FROM {t} WHERE id = 4"],
        renewed=1,
    ),
    "renewed_apart": Life(
        on_first=["ALTER TABLE {t} MODIFY n MEDIUMINT"],
        on_second=["UPDATE {t} SET n = 6 WHERE id = 7", "ALTER TABLE {t} MODIFY n MEDIUMINT"],
        renewed=1,
    ),
    "restarted": Life(first=["UPDATE {t} SET n = 8 WHERE id = 8"], renewed=1),
    "aged": Life(first=["UPDATE {t} SET n = 9 WHERE id = 9", "ALTER TABLE {t} ORDER BY id"], renewed=1),
    "made_again": Life(
        first=[
            "DROP TABLE {t}",
            "CREATE TABLE {t} (id INT PRIMARY KEY, w INT)",
            "INSERT INTO {t} VALUES (7, 7), (8, 8)",
        ],
        columns=("id", "w"),
        renewed=1,
        told=True,
    ),
    "truncated": Life(
        first=["UPDATE {t} SET n = 5 WHERE id = 3", "TRUNCATE {t}", "INSERT INTO {t} VALUES (3, 60)"],
        second=["INSERT INTO {t} VALUES (4, 70)", "TRUNCATE {t}", "INSERT INTO {t} VALUES (3, 80)"],
    ),
    "widened": Life(
        on_first=["ALTER TABLE {t} MODIFY n BIGINT", "UPDATE {t} SET n = 5000000000 WHERE id = 1"],
        on_second=["UPDATE {t} SET n = 4 WHERE id = 1", "ALTER TABLE {t} MODIFY n BIGINT"],
    ),
    "renamed": Life(
        on_first=["UPDATE {t} SET n = 11 WHERE id = 1", "ALTER TABLE {t} RENAME COLUMN n TO c"],
        on_second=["UPDATE {t} SET n = 7 WHERE id = 1", "ALTER TABLE {t} RENAME COLUMN n TO c"],
        columns=("id", "c"),
    ),
    "filled": Life(
        first=["INSERT INTO {t} VALUES (20, 1)", "ALTER TABLE {t} ADD COLUMN m INT NOT NULL DEFAULT 4"],
        second=["UPDATE {t} SET m = 5 WHERE id = 20"],
        columns=("id", "n", "m"),
    ),
    "swapped": Life(
        first=[*of("swapped", [CUT_OVER]), "UPDATE {t} SET n = n + 1 WHERE id < 6"],
        columns=("id", "n", "m"),
        renewed=1,
        told=True,
    ),
    "swapped_apart": Life(
        on_first=[*of("swapped_apart", [CUT_OVER]), "UPDATE {t} SET n = n + 1 WHERE id < 6"],
        on_second=[
            "UPDATE {t} SET n = n + 2 WHERE id < 3",
            "ALTER TABLE {t} MODIFY n BIGINT, ADD COLUMN m VARCHAR(9) DEFAULT 'new'",
        ],
        second=["UPDATE {t} SET n = n + 1 WHERE id = 6"],
        columns=("id", "n", "m"),
        renewed=1,
        told=True,
    ),
    "by_text": Life(
        at_last=[
            "UPDATE {t} SET n = 4",
            "SET SESSION binlog_format = STATEMENT",
            "UPDATE {t} SET n = n + 1",
            "SET SESSION binlog_format = ROW",
            "UPDATE {t} SET n = n + 4 WHERE id = 2",
        ],
        renewed=1,
    ),
    "mended": Life(first=["UPDATE {t} SET n = 1 WHERE id IN (2, 5)"], second=["DELETE FROM {t} WHERE id = 3"]),
    "parents": Life(first=["DELETE FROM {t} WHERE id = 3"], second=["UPDATE {t} SET id = 40 WHERE id = 4"]),
    "children": Life(
        made=[
            "CREATE TABLE {t} (id INT PRIMARY KEY, n INT,"
            " FOREIGN KEY f (n) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE)",
            "INSERT INTO {t} VALUES (1, 3), (2, 3), (3, 4), (4, 5)",
        ],
        first=["INSERT INTO {t} VALUES (9, 5)"],
    ),
    "prepared": Life(second=["INSERT INTO {t} VALUES (70, 7)"]),
    "born": Life(made=(), first=[MADE, FILLED, "DELETE FROM {t} WHERE id = 2"], second=["UPDATE {t} SET n = 0"]),
    "dropped": Life(first=["UPDATE {t} SET n = 0", "DROP TABLE {t}"]),
    # The rules take it only when the runs that die begin: its rows are copied meanwhile.
    "late": Life(second=["UPDATE {t} SET n = n + 1 WHERE id > 6"]),
}  # fmt: skip
# What each has in the end; and at the beginning, but for the one that is damaged then.
ENDS = {name: life.columns for name, life in LIVES.items() if name != "dropped"}
BEGIN_WITH = {name: KEY for name, life in LIVES.items() if life.made and name not in ("late", "mended")}
XA = ("XA START 'x'", "INSERT INTO prepared VALUES (50, 5)", "XA END 'x'", "XA PREPARE 'x'")


def of_all(which: str) -> list[str]:
    """The statements of all tables that are in a part of their lives."""
    return [sql.format(t=name) for name, life in LIVES.items() for sql in getattr(life, which)]


def begun(directory: Path, servers: Servers, schema: str, copying: Mapping[str, str]) -> Steps:
    """A feed of all tables but two that has caught up and is settled; tools are at work on some. `copying`: what `copy`
    of the feed file says besides."""
    steps = Steps(directory, servers, schema)
    steps.everywhere(*of_all("made"))
    steps.set(
        tables=[f"{schema}.*", f"!{schema}.late"],
        modes=[{"match": "*.aged", "mode": "history"}],
        sink={"path": str(steps.feed.sink.path), "changes": True},
        copy={"chunk_rows_max": 1000, "group_time": "0s", **copying},
    )
    steps.run()
    both = {"swapped": ("-80", "80-"), "swapped_apart": ("-80",)}
    stages = [
        {shard: [sql for name in both if shard in both[name] for sql in of(name, part)] for shard in servers}
        for part in TOOL
    ]
    follow(steps, stages, both)
    settled(steps.feed)
    return steps


def damaged(steps: Steps) -> list[tuple[Chunk, ...]]:
    """Damage a table of the lake; what verify finds to mend."""
    table = TableId(steps.schema, "mended")
    for rewrite in (without("id", 3), with_values("id", 5, "n", 77)):
        directory = Path(str(table_dir(steps.feed.sink.path, table)))
        assert plant(directory, newest(steps).shape(table), rewrite)
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    differing = verify(steps.feed, endpoints, Here()).differing
    assert {chunks[0].table for chunks in differing} == {table}
    return list(differing)


def first_round(steps: Steps) -> None:
    """What the first runs that die meet: statements on every table, and orders to copy one again and mend another."""
    differing = damaged(steps)
    steps.sql("-80", *XA)
    steps.everywhere(*of_all("first"))
    steps.sql("-80", *of_all("on_first"))
    catchment.dump(steps.file, "restart", f"{steps.schema}.restarted", wait=0)
    with opened(steps) as store:
        for chunks in differing:
            of = chunks[0].of
            orders.give(store, Order(Action.MEND, "ada", 1, of.table, of.shard, chunks=chunks))
    few = {"chunk_rows_max": 5, "group_time": "0s", "groups_per_shard": 1}
    copying = steps.feed.copying
    if copying.strategy is not Strategy.REWIND:
        few |= {"strategy": copying.strategy.value, "marks": copying.marks}
    steps.set(tables=[f"{steps.schema}.*"], copy=few)


def second_round(steps: Steps) -> None:
    """What later runs meet: the other shard follows, what was prepared is committed, and a statement as text may have
    changed a table."""
    steps.sql("-80", "XA COMMIT 'x'")
    steps.everywhere(*of_all("second"))
    steps.sql("80-", *of_all("on_second"))
    steps.sql("-80", *of_all("at_last"))


def dies(steps: Steps, fault: Fault) -> int:
    """Run the feed, which dies at a place the first time that it comes there, then later and later, until a run comes
    through. How often it died."""
    for deaths, number in enumerate(TIMES):
        left = [number]

        def die(at: Fault, left: list[int] = left) -> None:
            left[0] -= at is fault
            if left[0] == 0:
                raise Died

        try:
            run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=die)
        except Died:
            print(f"{fault.value}:{number}: {newest(steps).epoch}", file=sys.stderr)
            continue
        return deaths
    return len(TIMES)


def opened(steps: Steps) -> closing[Store]:
    """The state store of the feed."""
    return closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name))


def given(steps: Steps) -> list[Kept]:
    """All orders, with their answers."""
    with opened(steps) as store, store.database.snapshot() as connection:
        return orders.listed(connection, store)
