"""DDL whose effect is in no log: the table stands as of the last exact epoch, is copied anew, and takes its place."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.erasure.places import data_files
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.upkeep.clean import Keeping
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.manifests import (
    generations,
    lake,
    manifests,
    must_be_equal,
    must_be_rows,
    newest,
    source,
    stale,
)
from tests.promises.exact.steps import EMPTIES, Steps, run_here
from tests.world.settled import clean_feed, settled

MADE = ("CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "INSERT INTO {t} VALUES (1, 10), (2, 20), (3, 30)")
BEGAN = ("id", "n")
PROOF = "INSERT INTO other VALUES (NULL)"
EMPTIED = tuple(sql.replace(" t", " {t}") for sql in EMPTIES)
# What is done to a table, in one epoch, and the columns that it has then.
WAYS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "unknown": ([*EMPTIED, "INSERT INTO {t} VALUES (7, 70)"], BEGAN),
    "emptied": ([*EMPTIED], BEGAN),
    "widened": (
        ["ALTER TABLE {t} MODIFY n BIGINT, ORDER BY id", "UPDATE {t} SET n = 5000000000 WHERE id = 2"],
        BEGAN,
    ),
    "narrowed": (["UPDATE {t} SET n = 1", "ALTER TABLE {t} MODIFY n TINYINT"], BEGAN),
    "defaulted": (["ALTER TABLE {t} ADD COLUMN m INT NOT NULL DEFAULT (2 + 2)"], ("id", "n", "m")),
    "changed": (["ALTER TABLE {t} CHANGE n m SMALLINT"], ("id", "m")),
    "made_text": (["ALTER TABLE {t} MODIFY n VARCHAR(20)"], BEGAN),
    "keyed": (["ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (n)"], BEGAN),
    "swapped": (
        [
            "CREATE TABLE {t}_new (id BIGINT PRIMARY KEY, n INT, m INT)",
            "INSERT INTO {t}_new SELECT id, n, 1 FROM {t}",
            "RENAME TABLE {t} TO {t}_old, {t}_new TO {t}",
            "DROP TABLE {t}_old",
        ],
        ("id", "n", "m"),
    ),
    "made_anew": (
        ["DROP TABLE {t}", "CREATE TABLE {t} (id INT PRIMARY KEY, w INT)", "INSERT INTO {t} VALUES (9, 9)"],
        ("id", "w"),
    ),
    # Two tables change places; one statement names both.
    "one": (["RENAME TABLE one TO x, two TO one, x TO two"], ("id", "m")),
    "two": ([], BEGAN),
    "again": ([*EMPTIED, "INSERT INTO {t} VALUES (1, 1)", *EMPTIED, "INSERT INTO {t} VALUES (2, 2)"], BEGAN),
    "apart": ([], BEGAN),
}
Columns = dict[str, tuple[str, ...]]
# For each epoch, the columns that its tables had, and their rows.
Seen = dict[int, tuple[Columns, dict[str, Any]]]
ENDS: Columns = {name: columns for name, (_, columns) in WAYS.items()}
BEGIN: Columns = {name: (("id", "m") if name == "two" else BEGAN) for name in WAYS}


@pytest.fixture(scope="module")
def nameless() -> Iterator[Servers]:
    """A server whose log does not name columns."""
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        yield {"a": server}


@pytest.fixture
def named(shards: Shards) -> Servers:
    return {"-80": shards[0], "80-": shards[1]}


LOGS = [
    pytest.param(
        "named", marks=pytest.mark.promise("a table whose rows changed without being logged is copied again")
    ),
    pytest.param(
        "nameless",
        marks=pytest.mark.mariadb("MySQL logs the names of columns or nothing that could describe a table"),
    ),
]


@pytest.mark.parametrize("log", LOGS)
def test_tables_are_copied_anew_and_every_epoch_can_be_read(
    log: str,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_here(monkeypatch)
    servers: Servers = request.getfixturevalue(log)
    steps = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    first, last = next(iter(servers)), list(servers)[-1]
    steps.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", PROOF)
    for name in WAYS:
        steps.everywhere(*(sql.format(t=name) for sql in MADE))
    steps.everywhere("ALTER TABLE two CHANGE n m INT")
    steps.run()
    begin = newest(steps).epoch
    seen: Seen = {begin: (BEGIN, source(steps, BEGIN))}

    for name, (statements, _) in WAYS.items():
        steps.everywhere(*(sql.format(t=name) for sql in statements))
    apart = "ALTER TABLE apart MODIFY n MEDIUMINT"
    steps.sql(first, apart)
    if last != first:
        steps.everywhere(PROOF, PROOF)
        steps.run()
        assert "apart" in stale(newest(steps))
        must_be_rows(lake(steps, {"apart": BEGAN}), {"apart": seen[begin][1]["apart"]})
        steps.sql(last, apart, "UPDATE apart SET n = 1")
    steps.everywhere(PROOF, PROOF)
    steps.renew(PROOF)
    must_be_equal(steps, {**ENDS, "other": ("id",)})
    seen[newest(steps).epoch] = (ENDS, source(steps, ENDS))
    # The plain tables have no version yet: the first one is of the new copies.
    must_be_seen(steps, seen)
    for _ in range(2):
        settled(steps.feed)
    must_be_seen(steps, seen)

    steps.everywhere(
        *(f"DELETE FROM {name} WHERE id = 1" for name in ENDS), "INSERT INTO again VALUES (42, 1)"
    )
    steps.run()
    must_be_equal(steps, ENDS)
    settled(steps.feed)
    steps.everywhere("DELETE FROM again WHERE id = 42", "ALTER TABLE again CHANGE n m SMALLINT", PROOF)
    steps.renew(PROOF)
    ends = {**ENDS, "again": ("id", "m")}
    must_be_equal(steps, ends)
    seen[newest(steps).epoch] = (ends, source(steps, ends))
    must_be_seen(steps, seen)
    new = {name: len(generations(manifests(steps), name)) - 1 for name in WAYS}
    assert new == {name: 2 if name == "again" else 1 for name in WAYS}

    settled(steps.feed)
    must_be_erased(steps, "again", 42)
    must_be_cleaned(steps)
    steps.everywhere(*(f"DELETE FROM {name} WHERE id = 3" for name in ends))
    steps.run()
    must_be_equal(steps, ends)


def must_be_seen(steps: Steps, seen: Seen) -> None:
    """Each epoch has the rows that the source had then."""
    for epoch, (columns, rows) in seen.items():
        must_be_rows(lake(steps, columns, epoch), rows)


def must_be_erased(steps: Steps, name: str, key: int) -> None:
    """An erasure reaches the old copy of a table, too."""
    assert execute(["erase", str(steps.file), "--table", f"{steps.schema}.{name}", "--keys", str(key)]) == 0
    files = [
        file
        for file in Path(str(steps.feed.sink.path)).rglob("*.parquet")
        if "_delta_log" not in file.parts and f"/{steps.schema}/{name}/" in str(file)
    ]
    assert files
    for file in files:
        rows = pq.ParquetFile(file).read()
        assert "id" not in rows.column_names or key not in rows["id"].to_pylist(), file


def must_be_cleaned(steps: Steps) -> None:
    """The files of old copies go when nobody can read them any more."""
    root = steps.feed.sink.path
    old = [tail_dir(root, TableId(steps.schema, name)) for name in WAYS]
    assert [one for one in old if data_files(one)]
    clean_feed(root, steps.feed.name, Keeping(window_seconds=0, attempt_seconds=0))
    assert not [one for one in old if data_files(one)]
