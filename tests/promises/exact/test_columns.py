"""Columns that a feed leaves out, masks or renames: what is hidden is kept nowhere, and all the rest is exact.

The judge computes HMACs from the standard library, and looks through every file that a feed leaves behind.
"""

import hmac
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import catchment
from catchment.api.views import views
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.rewind import spill
from catchment.sink.delta.files import exists
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled

KEY = "a key of thirty and some characters"
RULES = [
    {"match": "*.people.email", "mask": "hmac"},
    {"match": "*.people.age", "mask": "hmac"},
    {"match": "*.people.token", "mask": "hmac"},
    {"match": "*.people.card", "mask": "partial", "show": 3},
    {"match": "*.people.note", "mask": "nulls"},
    {"match": "*.people.secret*", "exclude": True},
    {"match": "*.people.comment", "rename": "remark"},
]
TABLE = (
    "CREATE TABLE people (id INT PRIMARY KEY, Email VARCHAR(80), age BIGINT, token VARBINARY(40), card VARCHAR(40),"
    " note LONGTEXT, secret_plan TEXT, comment VARCHAR(40), open INT)"
)
HIDDEN = "hidden"  # every value that may be kept nowhere has this word in it


def insert(first: int, count: int) -> str:
    """Rows of which some values are NULL, short, or longer than what is shown."""
    return (
        f"INSERT INTO people SELECT seq, IF(seq % 7, CONCAT('{HIDDEN}', seq % 5, '@é.example'), NULL),"
        " CAST(seq AS SIGNED) % 11 - 5,"
        f" IF(seq % 3, CONCAT('{HIDDEN}', seq % 4, CHAR(0)), NULL), LEFT(CONCAT(seq, '-{HIDDEN}-', seq), seq % 23),"
        f" IF(seq % 2, CONCAT('{HIDDEN} ', seq), NULL), CONCAT('{HIDDEN} ', seq), CONCAT('said ', seq), seq"
        f" FROM seq_{first}_to_{first + count - 1}"
    )


def digest(value: Any) -> str | None:
    """As anybody computes it."""
    if value is None:
        return None
    data = value if isinstance(value, bytes) else str(value).encode()
    return hmac.new(KEY.encode(), data, "sha256").hexdigest()


def last(value: str | None) -> str | None:
    """The last three characters of longer ones."""
    return None if value is None else "****" + (value[-3:] if len(value) > 3 else "")


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(columns=RULES, mask_key=KEY)
    return found


def of_source(steps: Steps) -> list[tuple[Any, ...]]:
    """What the lake is to hold, worked out from the shards."""
    rows = []
    for shard, server in steps.servers.items():
        query = f"SELECT id, email, age, token, card, comment, open FROM {steps.schema}.people"
        for key, email, age, token, card, comment, seen in server.sql(query):
            rows.append(
                (shard, key, digest(email), digest(age), digest(token), last(card), None, comment, seen)
            )
    return sorted(rows)


COLUMNS = ["_shard", "id", "Email", "age", "token", "card", "note", "remark", "open"]


def must_be_right(steps: Steps) -> None:
    """Every way to read the lake, before and after a settle; and `verify`."""
    wanted, name = of_source(steps), f"{steps.schema}.people"
    for after_settle in (False, True):
        state = catchment.read(steps.feed, name)
        rows = state.arrow()
        assert [c for c in rows.schema.names if c != "_epoch"] == COLUMNS
        assert sorted(tuple(row[c] for c in COLUMNS) for row in rows.to_pylist()) == wanted
        with duckdb.connect() as connection:
            connection.execute(views(steps.feed))
            chosen = ", ".join(f'"{c}"' for c in COLUMNS)
            assert sorted(connection.sql(f"SELECT {chosen} FROM {name}").fetchall()) == wanted
        if not after_settle:
            settled(steps.feed)
    plain = pl.read_delta(str(table_dir(steps.feed.sink.path, TableId(steps.schema, "people"))))
    assert sorted(plain.select(COLUMNS).rows()) == wanted
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    verdict = verification.verify(steps.feed, endpoints, Here())
    assert verdict.differences == 0, verdict.found
    assert sum(verdict.rows.values()) == len(wanted)


def contents(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """What every file says, once decompressed."""
    for path in directory.rglob("*"):
        if path.suffix == ".parquet":
            for column in pq.read_table(path, partitioning=None).itercolumns():
                yield path, str(column.to_pylist()).encode()
        if path.is_file() and path.name != "feed.yaml":
            yield path, path.read_bytes()


def must_be_nowhere(steps: Steps) -> None:
    """No file of lake, tail or state store has a word of what is hidden, nor the key."""
    looked = list(contents(steps.file.parent))
    assert len(looked) > 10
    for path, content in looked:
        assert HIDDEN.encode() not in content, path
        assert KEY.encode() not in content, path


def test_what_is_hidden_is_nowhere_and_the_rest_is_exact(steps: Steps) -> None:
    for shard, first in (("a", 1), ("b", 1001)):
        steps.sql(shard, TABLE, insert(first, 300))
    steps.run()
    must_be_right(steps)
    must_be_nowhere(steps)

    steps.sql(
        "a",
        insert(400, 20),
        "UPDATE people SET secret_plan = 'hidden again' WHERE id < 20",
        "UPDATE people SET email = 'hidden@elsewhere' WHERE id BETWEEN 10 AND 30",
        "UPDATE people SET id = id + 5000, note = NULL WHERE id BETWEEN 40 AND 50",
        "DELETE FROM people WHERE id BETWEEN 60 AND 70",
        "XA START 'm'",
        insert(700, 5),
        "XA END 'm'",
        "XA PREPARE 'm'",
    )
    steps.run()
    steps.sql("a", "XA COMMIT 'm'")
    steps.run()
    must_be_right(steps)
    must_be_nowhere(steps)


def test_columns_that_come_later_have_the_same_rules(steps: Steps) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 50))
    steps.run()
    steps.sql(
        "a",
        "ALTER TABLE people ADD COLUMN secret_late TEXT, DROP COLUMN card, DROP COLUMN email",
        "UPDATE people SET secret_late = 'hidden late', open = 7",
    )
    steps.run()
    steps.sql("a", "UPDATE people SET open = 8 WHERE id < 9")
    steps.sql("b", "ALTER TABLE people ADD COLUMN secret_late TEXT, DROP COLUMN card, DROP COLUMN email")
    steps.run()
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people ADD COLUMN card VARCHAR(40), ADD COLUMN Email VARCHAR(80)")
        steps.sql(shard, "UPDATE people SET card = 'hidden card 99', email = 'hidden@new' WHERE id < 9")
    steps.run()
    COLUMNS_NOW = ["_shard", "id", "age", "token", "note", "remark", "open", "card", "Email"]
    rows = catchment.read(steps.feed, f"{steps.schema}.people").arrow()
    assert [c for c in rows.schema.names if c != "_epoch"] == COLUMNS_NOW
    settled(steps.feed)
    for row in rows.to_pylist():
        new = row["id"] < 9
        assert (row["card"], row["Email"]) == (
            ("****" + " 99", digest("hidden@new")) if new else (None, None)
        )
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0
    must_be_nowhere(steps)


RENAMES = {
    "renamed": ["ALTER TABLE people CHANGE email mail VARCHAR(80)"],
    "swapped": ["CREATE TABLE _people_gho LIKE people", "ALTER TABLE _people_gho CHANGE email mail VARCHAR(80)",
                "INSERT INTO _people_gho SELECT * FROM people",
                "RENAME TABLE people TO _people_del, _people_gho TO people"],
}  # fmt: skip


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(RENAMES["renamed"], id="renamed"),
        pytest.param(RENAMES["swapped"], id="swapped", marks=pytest.mark.wide),
    ],
)
def test_what_was_hidden_is_not_shown_under_another_name(steps: Steps, statements: list[str]) -> None:
    """The table waits until there is a rule for the other name, also where it was ordered to be copied before."""
    name, proof = f"{steps.schema}.people", "INSERT INTO other VALUES (NULL)"
    steps.everywhere(TABLE, insert(1, 30), "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)")
    steps.run()
    before = catchment.read(steps.feed, name).arrow()
    steps.everywhere(*statements)
    for _ in range(4):
        steps.everywhere(proof)
        steps.run()
        assert catchment.read(steps.feed, name).arrow().equals(before)
    must_be_nowhere(steps)
    steps.set(columns=[{"match": "*.people.mail", "mask": "hmac"}, *RULES])
    steps.renew(proof)
    rows = catchment.read(steps.feed, name).arrow()
    assert "Email" not in rows.schema.names
    assert set(rows["mail"].to_pylist()) == {None, *(digest(f"{HIDDEN}{n}@é.example") for n in range(5))}
    must_be_nowhere(steps)


def test_what_was_hidden_is_shown_when_somebody_orders_it(steps: Steps) -> None:
    name, proof = f"{steps.schema}.people", "INSERT INTO other VALUES (NULL)"
    steps.everywhere(TABLE, insert(1, 30), "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)")
    steps.run()
    assert execute(["dump", "restart", str(steps.file), "--table", name]) == 0
    steps.everywhere("ALTER TABLE people CHANGE email mail VARCHAR(80)", proof)
    for _ in range(3):
        steps.everywhere(proof)
        steps.run()
    must_be_nowhere(steps)
    assert execute(["dump", "start", str(steps.file), "--table", name]) == 0
    steps.renew(proof)
    assert f"{HIDDEN}1@é.example" in catchment.read(steps.feed, name).arrow()["mail"].to_pylist()


def test_rows_that_lie_on_disk_for_a_while_are_masked(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction larger than memory holds is spilled: what is hidden is not in those files either."""
    written: list[bytes] = []
    write = spill.Spilling._write

    def noted(self: spill.Spilling, table: pa.Table) -> spill.Extent:
        written.extend(str(column.to_pylist()).encode() for column in table.itercolumns())
        return write(self, table)

    monkeypatch.setattr(spill.Spilling, "_write", noted)
    monkeypatch.setattr("catchment.rewind.spool.MEMORY_BYTES", 4096)
    monkeypatch.setattr("catchment.rewind.spool.Spool.__init__.__defaults__", (4096, 0))
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 10))
    steps.run()
    steps.sql("a", insert(100, 400), "UPDATE people SET open = 1")
    steps.run()
    assert written, "nothing was spilled"
    assert not any(HIDDEN.encode() in text for text in written)
    must_be_right(steps)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"columns": RULES[1:]}, "not what the feed began with"),
        ({"columns": [*RULES, {"match": "*.people.open", "mask": "nulls"}]}, "not what the feed began with"),
        ({"mask_key": KEY + "!"}, "mask_key is another one"),
        ({"columns": []}, "not what the feed began with"),
    ],
)
def test_a_feed_keeps_its_rules(steps: Steps, changed: dict[str, Any], said: str) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 5))
    steps.run()
    steps.set(**changed)
    with pytest.raises(ConfigError, match=said):
        steps.run()
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    with pytest.raises(ConfigError, match=said):
        verification.verify(steps.feed, endpoints, Here())
    steps.set(columns=RULES, mask_key=KEY)
    steps.run()
    must_be_right(steps)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([{"match": "*.people.id", "mask": "hmac"}], "a part of the key"),
        ([{"match": "*.people.*", "exclude": True}], "a part of the key"),
        ([{"match": "*.people.emial", "mask": "hmac"}], "no column of a chosen table has this name"),
        ([{"match": "*.person.email", "exclude": True}], "no column of a chosen table has this name"),
        ([{"match": "*.people.age", "mask": "partial"}], "has no last characters"),
        ([{"match": "*.people.comment", "rename": "OPEN"}], "that of column"),
        ([{"match": "*.people.comment", "rename": "_shard"}], "that of the lake's tables"),
        ([{"match": "*.people.*", "rename": "one"}], "that of column"),
    ],
)
def test_rules_that_cannot_be_had_are_refused_before_anything_is_written(
    steps: Steps, rules: list[dict[str, Any]], said: str
) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 5))
    steps.set(columns=rules)
    with pytest.raises(ConfigError, match=said):
        steps.run()
    assert not exists(table_dir(steps.feed.sink.path, TableId(steps.schema, "people")) / "_delta_log")


def test_a_key_may_be_renamed(steps: Steps) -> None:
    steps.set(columns=[{"match": "*.people.id", "rename": "person"}, *RULES])
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 200))
    steps.run()
    steps.sql("a", "DELETE FROM people WHERE id < 20", "UPDATE people SET id = id + 1000 WHERE id < 30")
    steps.run()
    settled(steps.feed)
    rows = catchment.read(steps.feed, f"{steps.schema}.people").arrow().to_pylist()
    wanted = [(row[0], row[1]) for row in of_source(steps)]
    assert sorted((row["_shard"], row["person"]) for row in rows) == wanted
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0


def test_change_data_and_commands(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed is told in the same form, and the commands read the key from where the file says it is."""
    monkeypatch.setenv("PEOPLE_KEY", KEY)
    sink = {"path": str(steps.feed.sink.path), "changes": True}
    steps.set(sink=sink, mask_key={"env": "PEOPLE_KEY"})
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 9))
    steps.run()
    settled(steps.feed)
    since = catchment.read(steps.feed, f"{steps.schema}.people").epoch
    steps.sql("a", "UPDATE people SET email = 'hidden@new', comment = 'new' WHERE id = 5")
    steps.run()
    settled(steps.feed)
    told = catchment.changes(steps.feed, f"{steps.schema}.people", since=since).arrow().to_pylist()
    assert [(row["remark"], row["Email"]) for row in sorted(told, key=lambda row: row["_change_type"])] == [
        ("new", digest("hidden@new")),
        ("said 5", digest("hidden0@é.example")),
    ]
    must_be_nowhere(steps)
    assert execute(["verify", str(steps.file)]) == 0
    assert execute(["doctor", str(steps.file)]) == 0
    steps.set(columns=RULES[1:])
    assert execute(["verify", str(steps.file)]) == ConfigError.exit_code
    assert execute(["doctor", str(steps.file)]) != 0


def test_a_column_that_is_added_and_cannot_have_its_rule_stops_its_table(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 5))
    steps.run()
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people ADD COLUMN remark INT", "UPDATE people SET remark = 1")
    steps.must_stop(caplog, "people", r"that of column .*drop it again")
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people DROP COLUMN remark", "CREATE TABLE z (id INT PRIMARY KEY)")
    steps.renew("REPLACE INTO z VALUES (1)")
    must_be_right(steps)
