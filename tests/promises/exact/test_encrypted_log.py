"""A log that MariaDB encrypts on its disk is served in the clear: a feed of it copies, follows and resumes."""

from pathlib import Path

from pyspark import SparkContext

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.world.judge import lake_rows, source_rows

T = "shop.t"
WORD = "plainly-to-be-seen"


def test_a_feed_of_an_encrypted_log(spark: SparkContext, plugins: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("1;" + "0123456789abcdef" * 4 + "\n")
    settings = {
        "plugin_dir": str(plugins),
        "plugin_load_add": "file_key_management",
        "file_key_management_filename": str(keys),
        "encrypt_binlog": "ON",
    }
    with PrivateServer(server_id=122, settings=settings) as server:
        server.sql(
            "CREATE DATABASE shop",
            f"CREATE TABLE {T} (id INT PRIMARY KEY, c VARCHAR(40))",
            f"INSERT INTO {T} VALUES (1, '{WORD}'), (2, 'b'), (3, 'c')",
        )
        servers = {"-80": server}
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=2)
        for number in (10, 20):
            with FeedRun(feed) as run:
                run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
                server.sql(
                    f"INSERT INTO {T} VALUES ({number}, '{WORD}')",
                    "FLUSH BINARY LOGS",
                    f"UPDATE {T} SET c = CONCAT(c, '!') WHERE id < {number}",
                    f"DELETE FROM {T} WHERE id = {number // 10}",
                )
                manifest = run.wait_for_log(servers)
            found = read(feed, T, manifest.epoch).arrow().to_pylist()
            assert lake_rows(found, ("id",)) == source_rows(servers, T, ("id",))
            assert len(found) == 3
            server.sql(f"UPDATE {T} SET c = 'while it was stopped' WHERE id = 3")
        written = [server.datadir / name for name, *_ in server.sql("SHOW BINARY LOGS")]
        assert len(written) >= 3
        assert not any(WORD.encode() in file.read_bytes() for file in written), "the log is not encrypted"
