"""Each command asks for the secrets that it uses, at once and with their lines, and for no others."""

from pathlib import Path

import duckdb
import pytest

from catchment.cli.main import execute
from catchment.config import load
from catchment.model.epoch import Part
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS
from tests.world import records
from tests.world.log_lines import without_times


@pytest.fixture
def feed_file(tmp_path: Path) -> Path:
    """A feed whose shards cannot be reached, and whose lake holds two epochs."""
    feeder = Feeder(tmp_path / "lake")
    feeder.put(ORDERS, (1, "a"), (2, "b"), part=Part.BASE)
    feeder.put(ORDERS, (2, "B"), (3, "C"))
    file = tmp_path / "feed.yaml"
    file.write_text(f"""
name: {FEED}
source:
  keyspace: shop
  shards:
    - {{name: "-80", host: shard.invalid, user: u, password: {{env: CATCHMENT_UNSET}}}}
tables: [shop.*]
sink: {{path: lake}}
state: {{env: CATCHMENT_STATE}}
""")
    return file


@pytest.mark.parametrize("command", ["run", "doctor", "verify"])
def test_commands_that_read_shards_name_all_that_is_missing(
    command: str, feed_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([command, str(feed_file)]) == 2
    assert without_times(capsys.readouterr().err).splitlines() == [
        f"catchment: {feed_file}:6: source.shards[0].password: environment variable CATCHMENT_UNSET is not set",
        f"{'catchment: ' if command == 'run' else ''}{feed_file}:9: state: environment variable CATCHMENT_STATE is not "
        "set",
    ]


@pytest.mark.parametrize("command", ["status", "settle"])
def test_status_and_settle_need_the_state_store_alone(
    command: str, feed_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([command, str(feed_file)]) == 2
    assert capsys.readouterr().err == (
        f"catchment: {feed_file}:9: state: environment variable CATCHMENT_STATE is not set\n"
    )
    monkeypatch.setenv("CATCHMENT_STATE", "kept.db")
    store = Store.open(load(feed_file, secrets=("state",)).state.get_secret_value(), FEED)
    with hold(store) as lease:
        store.put_manifest(records.manifest(3), lease.fence)
        store.put_commit(records.commit(3), lease.fence)
    store.close()
    assert execute([command, str(feed_file)]) == 0
    assert {"status": "-80    binlog.000001:3000", "settle": "shop.orders: 2 changes settled"}[
        command
    ] in capsys.readouterr().out


def test_views(feed_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["views", str(feed_file)]) == 0
    newest = capsys.readouterr().out
    assert execute(["views", "--write", str(feed_file)]) == 0
    written = Path(capsys.readouterr().out.removesuffix("\n"))
    assert written == feed_file.parent / "lake" / "_catchment" / f"views-{FEED}.sql"
    assert execute(["views", "--epoch", "1", str(feed_file)]) == 0
    first = capsys.readouterr().out
    for text, ids in ((newest, [1, 2, 3]), (written.read_text(), [1, 2, 3]), (first, [1, 2])):
        with duckdb.connect() as connection:
            connection.execute(text)
            assert connection.sql("SELECT id FROM shop.orders ORDER BY id").fetchall() == [(i,) for i in ids]


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        (["--epoch", "7"], 2, "lake: shop has not committed epoch 1970-01-01T00:00:00Z.0007"),
        (["--epoch", "x"], 2, "epoch: not an epoch: 'x'"),
    ],
)
def test_views_that_cannot_be_made(
    option: list[str], code: int, said: str, feed_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["views", *option, str(feed_file)]) == code
    assert said in capsys.readouterr().err
