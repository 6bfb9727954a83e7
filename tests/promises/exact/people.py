"""A table of people, of which a feed hides columns, and what the lake is to hold of it.

HMACs are computed from the standard library, and every file that a feed leaves behind is looked through.
"""

import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq

import catchment
from catchment.api.views import views
from catchment.feed import verify as verification
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps
from tests.world.engines import Here
from tests.world.settled import settled

KEY = "a key of thirty and some characters"
RULES = [
    {"match": "*.people*.email", "mask": "hmac"},
    {"match": "*.people*.age", "mask": "hmac"},
    {"match": "*.people*.token", "mask": "hmac"},
    {"match": "*.people*.card", "mask": "partial", "show": 3},
    {"match": "*.people*.note", "mask": "nulls"},
    {"match": "*.people*.secret*", "exclude": True},
    {"match": "*.people*.comment", "rename": "remark"},
]
TABLE = (
    "CREATE TABLE people (id INT PRIMARY KEY, Email VARCHAR(80), age BIGINT, token VARBINARY(40), card VARCHAR(40),"
    " note LONGTEXT, secret_plan TEXT, comment VARCHAR(40), open INT)"
)
HIDDEN = "hidden"  # every value that may be kept nowhere has this word in it


def insert(first: int, count: int) -> str:
    """Rows of which some values are NULL, short, or longer than what is shown."""
    return into("people", first, count)


def into(table: str, first: int, count: int) -> str:
    """The same for another table."""
    return (
        f"INSERT INTO {table} SELECT seq, IF(seq % 7, CONCAT('{HIDDEN}', seq % 5, '@é.example'), NULL),"
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
