"""Comments of the source are those of the lake, as every reader shows them."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from catchment.api.views import views
from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps, run_here
from tests.world.settled import settled

TABLE = (
    "CREATE TABLE people (id INT PRIMARY KEY COMMENT 'number', name VARCHAR(9) COMMENT 'it''s \"théir\" name',"
    " secret INT COMMENT 'hidden word', c INT COMMENT 'rank', plain INT) COMMENT 'who they are'"
)
RULES = [{"match": "*.people.secret", "exclude": True}, {"match": "*.people.c", "rename": "tier"}]


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(columns=RULES)
    for shard in "ab":
        found.sql(shard, TABLE, "INSERT INTO people VALUES (1, 'a', 2, 3, 4)")
    found.run()
    settled(found.feed)
    return found


def of_table(steps: Steps) -> DeltaTable:
    return DeltaTable(table_dir(steps.feed.sink.path, TableId(steps.schema, "people")))


def of_columns(steps: Steps) -> dict[str, str]:
    """The comments of columns, as delta-rs has them."""
    fields = of_table(steps).schema().fields
    return {f.name: str(f.metadata["comment"]) for f in fields if "comment" in f.metadata}


@pytest.mark.promise("the lake has the comments of tables and columns, except those of hidden columns")
def test_comments_are_those_of_the_source(steps: Steps) -> None:
    assert of_columns(steps) == {"id": "number", "name": 'it\'s "théir" name', "tier": "rank"}
    assert of_table(steps).metadata().description == "who they are"
    with duckdb.connect() as connection:
        connection.execute(views(steps.feed))
        found = connection.sql("SELECT column_name, comment FROM duckdb_columns() WHERE comment IS NOT NULL")
        assert dict(found.fetchall()) == of_columns(steps)
        assert connection.sql("SELECT comment FROM duckdb_views() WHERE view_name = 'people'").fetchall() == [
            ("who they are",)
        ]
    # Of columns that come, and those that a run finds.
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people ADD COLUMN late INT COMMENT 'came later', DROP COLUMN name")
    steps.run()
    settled(steps.feed)
    assert of_columns(steps) == {"id": "number", "tier": "rank", "late": "came later"}
    for comment, of_lake in (("they", "they"), ("", None)):
        for shard in "ab":
            steps.sql(shard, f"ALTER TABLE people COMMENT = '{comment}'")
        steps.run()
        steps.sql("b", "UPDATE people SET plain = plain + 1")
        steps.run()
        settled(steps.feed)
        assert of_table(steps).metadata().description == of_lake
    assert of_columns(steps) == {"id": "number", "tier": "rank", "late": "came later"}
    for path in steps.file.parent.rglob("*"):
        assert not path.is_file() or b"hidden word" not in path.read_bytes(), path
