"""A table that goes while it is copied, of a feed that is to fail then: the run ends, and says the way out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.model.epoch import Manifest
from catchment.model.errors import SourceError
from catchment.model.table import TableId
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.manifests import carried, must_be_equal, newest
from tests.promises.exact.steps import Steps, run_here

# Statements on one shard.
WAYS = {
    "dropped": (
        "DROP TABLE dropped",
        r'was dropped; .*add "!{0}\.dropped" to `tables` and start once with `--leave {0}',
    ),
    "altered": (
        "ALTER TABLE altered CHANGE id ident INT",
        r"{0}\.altered at .*: columns were altered: id modified, id to ident renamed, and schema_change is fail; with "
        r"schema_change: evolve in the feed file",
    ),
}


def rows_of(manifest: Manifest, table: str) -> int:
    """How many rows of a table are copied."""
    return sum(copy.rows for copy in manifest.cut.copies if copy.table.name == table)


def must_leave(steps: Steps, name: str) -> None:
    """Run the feed until a table is out of it."""
    with FeedRun(steps.feed, leave=[TableId(steps.schema, name)]) as run:
        run.wait("it is out", lambda epochs: name not in carried(epochs[-1]))


@pytest.mark.promise("a statement that ends a run is named together with the way out")
def test_a_table_that_goes_while_it_is_copied_is_told_with_the_way_out(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    steps.set(
        schema_change="fail",
        copy={
            "chunk_rows_max": 10,
            "group_time": "0s",
            "groups_per_shard": 1,
            "first": [f"{steps.schema}.dropped"],
        },
    )
    for name in WAYS:
        steps.everywhere(
            f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} SELECT seq FROM seq_1_to_3000"
        )
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, c INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    left: list[str] = []
    for name, (statement, said) in WAYS.items():

        def go_while_it_is_copied(name: str = name, statement: str = statement) -> None:
            with FeedRun(steps.feed) as run:
                copying = run.wait("some rows", lambda epochs: rows_of(epochs[-1], name) > 0)
                assert not copying.cut.copied
                steps.sql("80-", statement)
                run.wait_for_log(servers)

        with pytest.raises(SourceError, match=said.format(steps.schema)) as first:
            go_while_it_is_copied()
        with pytest.raises(SourceError) as second:
            steps.run()
        assert str(second.value) == str(first.value)
        left.append(name)
        steps.set(tables=[f"{steps.schema}.*", *(f"!{steps.schema}.{one}" for one in left)])
        must_leave(steps, name)
    steps.run()
    assert carried(newest(steps)) == {"t"}
    must_be_equal(steps, {"t": ("id", "c")})
