"""Tables that are made after the feed began enter it and are exact from their first epoch on."""

import random
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from catchment.api.epochs import epochs
from catchment.api.read import read
from catchment.feed import asked, newcomers
from catchment.model.errors import ConfigError, ServerSaid
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.source.declared import read_declared
from catchment.source.session import Session
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun, Thread
from tests.promises.exact.manifests import born_on, carried, manifests, must_be_equal, newest
from tests.promises.exact.steps import Steps, caught_up
from tests.world.oracle import Oracle
from tests.world.patience import PATIENCE_SECONDS

KEY = ("id", "n")
# With these words it is not born in the log: so its rows are copied.
NEW = "CREATE TABLE IF NOT EXISTS {t} (id INT PRIMARY KEY, n INT)"
ROWS = "INSERT INTO {t} VALUES (1, 10), (2, 20), (3, 30)"
PROOF = ("INSERT INTO t VALUES (99)", "DELETE FROM t WHERE id = 99")
CASES = {
    "copied": ([NEW, ROWS, "UPDATE {t} SET n = n + 1"], KEY),
    "altered": ([NEW, ROWS, "ALTER TABLE {t} ADD COLUMN m INT", "UPDATE {t} SET m = id"], ("id", "n", "m")),
    "collated": (
        [
            "CREATE TABLE IF NOT EXISTS {t} (name VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
            "INSERT INTO {t} VALUES ('a', 1), ('B', 2), ('c', 3)",
        ],
        ("name", "n"),
    ),
    "composite": (
        [
            "CREATE TABLE IF NOT EXISTS {t} (a INT, b VARCHAR(5), n INT, PRIMARY KEY (a, b))",
            "INSERT INTO {t} VALUES (1, 'x', 1), (1, 'y', 2)",
        ],
        ("a", "b", "n"),
    ),
    "nothing": (["CREATE TABLE IF NOT EXISTS {t} (id INT PRIMARY KEY)"], ("id",)),
}
MANY, FEW = 12, 2
LOGINS_EACH = 12  # of a table that comes alone there are some 24
COLUMNS = {name: columns for name, (_, columns) in CASES.items()}


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up and carries what comes."""
    made = "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"
    begun = caught_up(monkeypatch, tmp_path, servers, fresh_schema(*servers.values()), *made)
    begun.set(new_tables="carry")
    return begun


@pytest.mark.promise("a new table enters a running feed, or the feed says what keeps it out")
def test_tables_enter_and_what_keeps_them_out_is_told(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    schema = steps.schema
    (steps.file.parent / "other").mkdir()
    other = Steps(steps.file.parent / "other", steps.servers, schema)
    steps.everywhere(*(sql.format(t=name) for name in ("theirs", "late") for sql in (NEW, ROWS)))
    other.set(name="other", sink={"path": str(steps.feed.sink.path)}, tables=[f"{schema}.theirs"])
    other.run()

    steps.set(tables=[f"{schema}.*", f"!{schema}.late"])
    for name, (statements, _) in CASES.items():
        steps.everywhere(*(sql.format(t=name) for sql in statements))
    steps.everywhere("CREATE TABLE nokey (id INT)", *PROOF)
    steps.sql("-80", *(sql.format(t="awaited") for sql in (NEW, ROWS)))
    steps.run()
    told = [one for one in caplog.messages if "does not enter the feed yet" in one]
    (nokey,) = (one for one in told if one.startswith(f"{schema}.nokey "))
    assert "there is no primary key" in nokey
    assert [one for one in told if one.startswith(f"{schema}.theirs ")]
    for name in CASES:
        steps.enter(name, *PROOF)
    assert carried(newest(steps)) == {"t", *CASES}
    must_be_equal(steps, {**COLUMNS, "t": ("id",)})
    assert {name: born_on(manifests(steps), name) for name in CASES} == {name: set() for name in CASES}

    steps.sql("80-", *(sql.format(t="awaited") for sql in (NEW, ROWS)))
    steps.everywhere(
        "UPDATE collated SET n = 9 WHERE name = 'b'", "DELETE FROM composite WHERE b = 'x'",
        "ALTER TABLE altered DROP COLUMN n", "INSERT INTO altered VALUES (4, 4)", "INSERT INTO nothing VALUES (5)",
    )  # fmt: skip
    steps.set(tables=[f"{schema}.*"])  # the rules take one only now, whose CREATE no run kept
    for name in ("awaited", "late"):
        steps.enter(name, *PROOF)
    ends = {**COLUMNS, "altered": ("id", "m"), "awaited": KEY, "late": KEY}
    must_be_equal(steps, ends)
    must_have_no_rows_before(steps, "copied")


def test_tables_that_come_together_enter_together(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema for each tenant, or a dump that is restored: not an epoch for each table."""
    monkeypatch.setattr(newcomers, "_TOGETHER_SECONDS", PATIENCE_SECONDS)
    names = [f"n{number}" for number in range(MANY)]
    made = ("CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", NEW)  # one in two is copied
    for number, name in enumerate(names):
        steps.everywhere(made[number % 2].format(t=name), ROWS.format(t=name))
    before = logins(steps)
    for number in range(2):  # those that are copied have to be proven visible
        steps.everywhere(*PROOF)
        steps.run()
        begun = {shape.generation for shape in newest(steps).shapes if shape.table.name in names[number::2]}
        assert len(begun) <= FEW
    assert logins(steps) - before < LOGINS_EACH * MANY, "shards are asked for all of them at once"
    assert carried(newest(steps)) == {"t", *names}
    must_be_equal(steps, {**dict.fromkeys(names, KEY), "t": ("id",)})


def test_a_table_that_a_shard_cannot_be_asked_for_keeps_out_no_other(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards are asked for many at once, and one of these may be why they do not answer."""

    def refused(session: Session, tables: Collection[TableId], *args: Any) -> dict[TableId, Any]:
        if any(table.name == "spoils" for table in tables):
            raise ServerSaid(1033, "incorrect information in a file of table spoils")
        return read_declared(session, tables, *args)

    names = ("first", "spoils", "third")
    for name in names:
        steps.everywhere(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)", ROWS.format(t=name))
    with monkeypatch.context() as patch:
        patch.setattr(asked, "read_declared", refused)
        for name in ("first", "third"):
            steps.enter(name, *PROOF)
        assert carried(newest(steps)) == {"t", "first", "third"}
    monkeypatch.setattr(newcomers, "_PAUSE_SECONDS_MAX", 0.0)
    steps.enter("spoils", *PROOF)
    must_be_equal(steps, {**dict.fromkeys(names, KEY), "t": ("id",)})


def logins(steps: Steps) -> int:
    """How often somebody has logged in to the shards."""
    status = "SHOW GLOBAL STATUS LIKE 'Connections'"
    return sum(int(server.sql(status)[0][1]) for server in steps.servers.values())


def must_have_no_rows_before(steps: Steps, table: str) -> None:
    """The epochs before a table entered do not have it, and all others do."""
    found: list[bool] = []
    for epoch in reversed(epochs(steps.feed, limit=10_000)):
        try:
            read(steps.feed, f"{steps.schema}.{table}", epoch.epoch)
            found.append(True)
        except ConfigError:
            found.append(False)
    assert found == sorted(found)
    assert found.count(False) >= 2


def test_every_epoch_is_exact_while_tables_come_and_are_written_to(steps: Steps) -> None:
    """Ten tables, born in the log or copied, that are written to while others enter; one is made again and again. Each
    is compared with the log at every epoch."""
    rng, shards = random.Random(7), list(steps.servers)
    names = [f"n{number}" for number in range(10)]
    many = ", ".join(f"({key}, 0)" for key in range(1, 1001))
    changes = (
        "REPLACE INTO {} VALUES ({}, 7)",
        "DELETE FROM {} WHERE id BETWEEN {} AND {} + 5",
        "UPDATE {} SET n = n + 1 WHERE id % 7 = {} % 7",
    )

    def write() -> None:
        for number, name in enumerate(names):
            born = number % 2 == 0
            made = "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)" if born else NEW
            again = [f"DROP TABLE {name}", made.format(t=name)] if number % 3 == 0 else []
            steps.everywhere(made.format(t=name), *again, f"INSERT INTO {name} VALUES {many}")
            if number % 4 == 3:
                steps.everywhere("DROP TABLE n0", "CREATE TABLE n0 (id INT PRIMARY KEY, n INT)")
            for _ in range(40):
                of, key = rng.choice(("n0", name, names[max(0, number - 1)])), rng.randint(1, 1200)
                steps.sql(rng.choice(shards), rng.choice(changes).format(of, key, key))
        writer.stopping.set()

    writer = Thread("writer", write)
    with FeedRun(steps.feed) as run:
        writer.start()
        writer.join()
        writer.stop()

        def have_entered(done: Sequence[object]) -> bool:
            steps.everywhere(*PROOF)  # proves visible what was before
            return carried(run.epochs[-1]) == {"t", *names} and not run.epochs[-1].stale

        run.wait("all tables", have_entered)
    steps.run()
    must_be_equal(steps, dict.fromkeys(names, KEY))
    assert all(born_on(manifests(steps), name) == set(shards) for name in names[::2])
    assert judged(steps, [f"{steps.schema}.{name}" for name in names]) > 100


def judged(steps: Steps, tables: Sequence[str]) -> int:
    """Compare every epoch of tables with an integer key with the log, replayed by the oracle, as far as each is copied.
    How many epochs of a table were compared while it was copied or followed."""
    keys = {table: ("id",) for table in tables}
    oracles = {
        shard: Oracle.from_birth(server.login("root"), keys) for shard, server in steps.servers.items()
    }
    compared = 0
    for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all():
        found = {str(shape.table) for shape in row.manifest.shapes} & keys.keys()
        lake = {table: read(steps.feed, table, row.commit.epoch).arrow().to_pylist() for table in found}
        for shard, state in row.manifest.cut.shards.items():
            true = oracles[shard].advance(state.position.at.file, state.position.at.offset)
            for copy in (copy for copy in state.copies if str(copy.table) in found):
                table, limit = str(copy.table), copy.copied[0] if copy.copied else 0
                want = {
                    (key[0], record["n"])
                    for key, record in true[table].items()
                    if copy.done or int(str(key[0])) <= int(limit)
                }
                have = {(one["id"], one["n"]) for one in lake[table] if one["_shard"] == shard}
                assert have == want, f"{table} on {shard} as of epoch {row.commit.epoch}"
                compared += copy.copied is not None or copy.done
    return compared
