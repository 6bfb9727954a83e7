"""Log files that MariaDB encrypts on its disk, and whose running number gets one digit more, so that as text `1000000`
comes before `999999`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.promises.exact.steps import run_here
from tests.world.judge import lake_rows, source_rows

T = "shop.t"
WORD = "plainly-to-be-seen"


@pytest.fixture
def server(plugins: Path, tmp_path: Path) -> Iterator[PrivateServer]:
    keys = tmp_path / "keys"
    keys.write_text("1;" + "0123456789abcdef" * 4 + "\n")
    settings: dict[str, str | int] = {
        "plugin_dir": str(plugins),
        "plugin_load_add": "file_key_management",
        "file_key_management_filename": str(keys),
        "encrypt_binlog": "ON",
        "max_binlog_size": 4096,
    }
    with PrivateServer(server_id=122, settings=settings) as server:
        yield server


def numbers(server: PrivateServer) -> list[int]:
    return [int(name.rpartition(".")[2]) for name, *_ in server.sql("SHOW BINARY LOGS")]


def begun(server: PrivateServer, first: int, directory: Path) -> Feed:
    """A feed of a table with three rows, in a log that begins with a file of this number."""
    server.sql(
        f"RESET MASTER TO {first}",
        "DROP DATABASE IF EXISTS shop",
        "CREATE DATABASE shop",
        f"CREATE TABLE {T} (id INT PRIMARY KEY, c VARCHAR(400))",
        f"INSERT INTO {T} VALUES (1, '{WORD}'), (2, 'b'), (3, 'c')",
    )
    directory.mkdir()
    return make_feed(directory, {"-80": server}, "shop", chunk_rows=2, interval="50ms")


def must_be_equal(feed: Feed, server: PrivateServer, rows: int) -> None:
    found = read(feed, T).arrow().to_pylist()
    assert len(found) == rows
    assert lake_rows(found, ("id",)) == source_rows({"-80": server}, T, ("id",))


@pytest.mark.promise("encrypted binlogs, and file numbers that gain a digit, are read")
def test_encrypted_files_across_the_step_to_one_digit_more(
    server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    feed = begun(server, 999_997, tmp_path / "while it runs")
    with FeedRun(feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        epochs = []
        for n in range(1, 25):
            server.sql(
                f"UPDATE {T} SET c = CONCAT({n}, '{WORD}', REPEAT('y', 330)) WHERE id = {1 + n % 3}",
                f"INSERT INTO {T} VALUES ({100 + n}, '')",
                f"DELETE FROM {T} WHERE id = {98 + n}",
            )
            if n % 6 == 0:
                epochs.append(run.wait_for_log({"-80": server}).epoch)
    assert epochs == sorted(set(epochs))
    assert numbers(server)[0] < 1_000_000 < numbers(server)[-1]
    must_be_equal(feed, server, 5)
    written = [server.datadir / name for name, *_ in server.sql("SHOW BINARY LOGS")]
    assert not any(WORD.encode() in file.read_bytes() for file in written), "the log is not encrypted"

    feed = begun(server, 999_998, tmp_path / "while it is stopped")
    with FeedRun(feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        before = run.wait_for_log({"-80": server})
    for n in range(1, 7):
        server.sql(
            f"UPDATE {T} SET c = '{WORD} {n}'", f"INSERT INTO {T} VALUES ({10 + n}, '')", "FLUSH BINARY LOGS"
        )
    assert numbers(server)[-1] > 1_000_000 > int(before.cut.positions["-80"].at.file.rpartition(".")[2])
    with FeedRun(feed) as run:
        run.wait_for_log({"-80": server})
    must_be_equal(feed, server, 9)
