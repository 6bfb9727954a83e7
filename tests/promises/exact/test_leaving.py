"""A table leaves a feed only when the start says so; a later taking back is told the truth."""

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.applier import Applier
from catchment.model.epoch import Commit, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from catchment.state.store import Store
from tests.promises.exact.manifests import carried, lake, must_be_equal, newest
from tests.promises.exact.steps import Steps, run_here
from tests.world.settled import settled

TABLES = ("aged", "t", "u", "v")
MADE = [
    sql
    for table in TABLES
    for sql in (f"CREATE TABLE {table} (id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES (1), (2)")
]


@pytest.fixture
def steps(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of four tables that has caught up, of which one keeps its past."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    begun.set(modes=[{"match": "*.aged", "mode": "history"}])
    begun.sql("a", *MADE)
    begun.run()
    return begun


def takes(steps: Steps, *without: str) -> None:
    """Have `tables` take all tables but these."""
    steps.set(tables=[f"{steps.schema}.*", *(f"!{steps.schema}.{name}" for name in without)])


def plain_keys(steps: Steps, table: str) -> list[int]:
    """What any reader finds in a table."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))
    engine = QueryBuilder().register("plain", DeltaTable(place))
    return sorted(pa.table(engine.execute("SELECT id FROM plain").read_all())["id"].to_pylist())


@pytest.mark.promise("a table leaves a feed with --leave, and may come back")
def test_a_table_leaves_and_comes_back(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    s, begin = steps.schema, newest(steps).epoch
    must_not_leave_by_an_exclusion_alone(steps)
    steps.sql("a", "INSERT INTO u VALUES (3)", "DELETE FROM u WHERE id = 1")
    steps.run()  # nothing is settled yet
    last = newest(steps).epoch
    takes(steps, "u", "aged")
    with caplog.at_level(logging.WARNING):
        steps.run("u", "aged")  # the source is at rest: no epoch of its own comes
    assert caplog.messages == [
        f"2 tables ({s}.aged, {s}.u) have left the feed; the lake keeps the rows of epoch {epoch_text(last)}"
    ]
    assert carried(newest(steps)) == {"t", "v"}
    steps.run()  # the flag is needed once
    steps.run("u")  # and does no harm in a script
    settled(steps.feed)
    assert plain_keys(steps, "u") == [2, 3], "it has all that was committed"
    steps.sql("a", "INSERT INTO t VALUES (3)", "INSERT INTO u VALUES (4)")
    steps.run()
    assert carried(newest(steps)) == {"t", "v"}
    assert lake(steps, {"u": ("id",)}, last) == {"u": [("a", 2), ("a", 3)]}
    must_be_equal(steps, {"t": ("id",)})

    caplog.clear()
    steps.set(new_tables="skip")
    takes(steps)
    steps.sql("a", "INSERT INTO t VALUES (4)")
    steps.enter("u", "INSERT INTO v VALUES (9)", "DELETE FROM v WHERE id = 9")
    assert carried(newest(steps)) == {"t", "u", "v"}
    must_be_equal(steps, dict.fromkeys("tuv", ("id",)))
    assert any(
        one.startswith(f"1 table matches `tables` and is not carried: {s}.aged (it left at epoch ")
        for one in caplog.messages
    ), "a new copy would replace what it keeps"
    for epoch, keys in ((begin, [1, 2]), (last, [2, 3])):
        assert lake(steps, {"u": ("id",)}, epoch) == {"u": [("a", key) for key in keys]}
    settled(steps.feed)
    assert plain_keys(steps, "u") == [2, 3, 4]
    steps.sql("a", "INSERT INTO u VALUES (5)")
    steps.must_be_equal("u", "id")
    must_not_come_back_in_parts(steps)


def must_not_leave_by_an_exclusion_alone(steps: Steps) -> None:
    """Nothing has changed when a start is refused."""
    s, before = steps.schema, Store.open(steps.feed.state.get_secret_value(), steps.feed.name).newest()
    steps.set(tables=[f"{s}.t", f"{s}.aged"])
    committed = before[2]
    assert committed is not None
    epoch = re.escape(epoch_text(committed.epoch))
    said = (
        rf"^tables: {s}\.u, {s}\.v no longer match, but the feed carries them; correct `tables`, or let them go "
        rf"with `--leave {s}\.u --leave {s}\.v` .* as of epoch {epoch}$"
    )
    with pytest.raises(ConfigError, match=said):
        steps.run()
    with pytest.raises(ConfigError, match=rf"^tables: {s}\.v no longer matches, but the feed carries it"):
        steps.run("u")
    takes(steps)
    with pytest.raises(ConfigError, match=rf'^--leave {s}\.u: `tables` takes it; add "!'):
        steps.run("u")
    takes(steps, "w")
    with pytest.raises(ConfigError, match=rf"^--leave {s}\.w: the feed does not carry it; it carries "):
        steps.run("w")
    steps.set(tables=[f"{s}.later"])
    steps.sql("a", "CREATE TABLE later (id INT PRIMARY KEY)")
    said = r"takes none of the tables that the feed carries .*take one of them.*a new feed .* stays readable"
    for leave in ((), TABLES):
        with pytest.raises(ConfigError, match=said):
            steps.run(*leave)
    takes(steps)
    steps.sql("a", "DROP TABLE later")
    assert Store.open(steps.feed.state.get_secret_value(), steps.feed.name).newest() == before


def must_not_come_back_in_parts(steps: Steps) -> None:
    """What somebody removed of a table that left stays away."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "aged"))
    settled(steps.feed)
    shutil.rmtree(place)
    settled(steps.feed)
    assert not place.exists()


def test_a_run_that_dies_while_a_table_leaves(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    takes(steps, "u")
    steps.sql("a", "INSERT INTO t VALUES (3)")
    file, s = str(steps.file), steps.schema
    assert execute(["run", file, "--until-caught-up"]) == ConfigError.exit_code
    assert f"`--leave {s}.u`" in capfd.readouterr().err
    assert execute(["run", file, "--until-caught-up", "--leave", "u"]) == ConfigError.exit_code
    assert "--leave: u is not of the form schema.name" in capfd.readouterr().err

    def die(self: Applier, manifest: Manifest) -> Commit:
        raise RuntimeError("killed behind the manifest")

    with monkeypatch.context() as patch:
        patch.setattr(Applier, "apply", die)
        with pytest.raises(RuntimeError):
            steps.run("u")
    assert carried(newest(steps)) == {*TABLES}, "the lake has the epoch before"
    assert execute(["run", file, "--until-caught-up", "--leave", f"{s}.u"]) == 0
    must_be_equal(steps, {"t": ("id",)})
    assert carried(newest(steps)) == {"aged", "t", "v"}
