"""A table leaves a feed only when the start says so; a later taking back is told the truth."""

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.applier import Applier
from catchment.model.epoch import Commit, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from catchment.state.store import Store
from tests.promises.exact.steps import Steps, run_here
from tests.world.settled import settled

Begin = Callable[..., Steps]
MADE = (
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "CREATE TABLE u (id INT PRIMARY KEY)",
    "CREATE TABLE v (id INT PRIMARY KEY)",
    *(f"INSERT INTO {table} VALUES (1), (2)" for table in "tuv"),
)


@pytest.fixture
def steps(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of three tables that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    begun.sql("a", *MADE)
    begun.run()
    return begun


def carried(steps: Steps) -> list[str]:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return [shape.table.name for shape in row.manifest.shapes]


def plain_keys(steps: Steps, table: str) -> list[int]:
    """What any reader finds in a table."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))
    engine = QueryBuilder().register("plain", DeltaTable(place))
    return sorted(pa.table(engine.execute("SELECT id FROM plain").read_all())["id"].to_pylist())


def test_an_exclusion_alone_takes_no_table_out(steps: Steps, tmp_path: Path) -> None:
    before = Store.open(steps.feed.state.get_secret_value(), steps.feed.name).newest()
    steps.set(tables=[f"{steps.schema}.t"])
    s, committed = steps.schema, before[2]
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
    assert Store.open(steps.feed.state.get_secret_value(), steps.feed.name).newest() == before
    steps.set(tables=[f"{steps.schema}.*"])
    steps.sql("a", "INSERT INTO u VALUES (3)")
    steps.must_be_equal("u", "id")


def test_what_leaves_is_recorded_at_once(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    last = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert last is not None
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.u"])
    with caplog.at_level(logging.WARNING):
        steps.run("u")  # the source is at rest: no epoch of its own comes
    assert caplog.messages == [
        f"{steps.schema}.u has left the feed: its lake table stays as of epoch {epoch_text(last.manifest.epoch)}"
    ]
    assert carried(steps) == ["t", "v"]
    steps.run()  # the flag is needed once
    steps.run("u")  # and does no harm in a script
    steps.sql("a", "INSERT INTO t VALUES (3)", "INSERT INTO u VALUES (3)")
    steps.run()
    assert carried(steps) == ["t", "v"]
    assert read(steps.feed, f"{steps.schema}.u", last.manifest.epoch).arrow().num_rows == 2
    assert steps.lake("t", "id") == steps.source("t", "id")


def test_it_comes_back_with_a_new_copy_where_the_rules_take_it_again(steps: Steps) -> None:
    last = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert last is not None
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.u"], new_tables="skip")
    steps.run("u")
    steps.sql("a", "INSERT INTO u VALUES (3)", "DELETE FROM u WHERE id = 1", "INSERT INTO t VALUES (3)")
    steps.run()
    settled(steps.feed)
    steps.sql("a", "INSERT INTO u VALUES (4)", "INSERT INTO t VALUES (4)")
    steps.set(tables=[f"{steps.schema}.*"])
    steps.must_be_equal("u", "id")
    assert sorted(carried(steps)) == ["t", "u", "v"]
    assert read(steps.feed, f"{steps.schema}.u", last.manifest.epoch).arrow().num_rows == 2
    settled(steps.feed)
    assert plain_keys(steps, "u") == [2, 3, 4]
    steps.sql("a", "INSERT INTO u VALUES (5)")
    steps.must_be_equal("u", "id")


def test_one_that_keeps_more_than_the_rows_of_now_stays_out(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    steps.sql("a", "CREATE TABLE aged (id INT PRIMARY KEY)", "INSERT INTO aged VALUES (1)")
    steps.set(modes=[{"match": "*.aged", "mode": "history"}])
    steps.must_be_equal("aged", "id")
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.aged"])
    steps.run("aged")
    for modes in ([{"match": "*.aged", "mode": "history"}], []):
        caplog.clear()
        steps.set(tables=[f"{steps.schema}.*"], modes=modes)
        steps.sql(
            "a", "INSERT INTO aged VALUES (2)", "INSERT INTO t VALUES (3)", "DELETE FROM t WHERE id = 3"
        )
        with caplog.at_level(logging.WARNING):
            steps.run()
        assert caplog.messages[0].startswith(
            f"1 table matches `tables` and is not carried: {steps.schema}.aged (it left at epoch "
        )
        assert carried(steps) == ["t", "u", "v"]
        steps.sql("a", "DELETE FROM aged WHERE id = 2")


def test_a_run_that_dies_while_a_table_leaves(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.u"])
    steps.sql("a", "INSERT INTO t VALUES (3)")

    def die(self: Applier, manifest: Manifest) -> Commit:
        raise RuntimeError("killed behind the manifest")

    with monkeypatch.context() as patch:
        patch.setattr(Applier, "apply", die)
        with pytest.raises(RuntimeError):
            steps.run("u")
    assert carried(steps) == ["t", "u", "v"], "the lake has the epoch before"
    steps.must_be_equal("t", "id")
    assert carried(steps) == ["t", "v"]


def test_tables_of_the_flag_must_be_excluded_and_carried(steps: Steps) -> None:
    with pytest.raises(ConfigError, match=rf'^--leave {steps.schema}\.u: `tables` takes it; add "!'):
        steps.run("u")
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.w"])
    with pytest.raises(
        ConfigError, match=rf"^--leave {steps.schema}\.w: the feed does not carry it; it carries "
    ):
        steps.run("w")


def test_all_tables_cannot_leave(steps: Steps) -> None:
    steps.sql("a", "CREATE TABLE later (id INT PRIMARY KEY)")
    steps.set(tables=[f"{steps.schema}.later"])
    for leave in ((), ("t", "u", "v")):
        with pytest.raises(
            ConfigError,
            match=r"takes none of the tables that the feed carries .*take one of them.*a new feed .* stays readable",
        ):
            steps.run(*leave)


def test_the_command(steps: Steps, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.u"])
    file = str(tmp_path / "feed.yaml")
    assert execute(["run", file, "--until-caught-up"]) == ConfigError.exit_code
    said = capfd.readouterr().err
    assert f"`--leave {steps.schema}.u`" in said
    assert execute(["run", file, "--until-caught-up", "--leave", "u"]) == ConfigError.exit_code
    assert "--leave: u is not of the form schema.name" in capfd.readouterr().err
    assert execute(["run", file, "--until-caught-up", "--leave", f"{steps.schema}.u"]) == 0
    assert carried(steps) == ["t", "v"]


def test_the_plain_table_of_one_that_left_has_all_that_was_committed(steps: Steps) -> None:
    steps.sql("a", "INSERT INTO u VALUES (3)", "DELETE FROM u WHERE id = 1")
    steps.run()  # nothing is settled yet
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.u"])
    steps.run("u")
    settled(steps.feed)
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "u"))
    assert plain_keys(steps, "u") == [2, 3]
    settled(steps.feed)
    shutil.rmtree(place)
    settled(steps.feed)
    assert not place.exists(), "what somebody removed does not come back in parts"
