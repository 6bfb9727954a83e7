"""Log files whose running number gets one digit more, as text `1000000` before `999999`, while a feed reads them."""

from pathlib import Path

from pyspark import SparkContext

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.world.judge import lake_rows, source_rows

T = "shop.t"
KEY = ("id",)


def _numbers(server: PrivateServer) -> list[int]:
    return [int(name.rpartition(".")[2]) for name, *_ in server.sql("SHOW BINARY LOGS")]


def test_the_number_of_a_log_file_gets_a_digit_more(spark: SparkContext, tmp_path: Path) -> None:
    with PrivateServer(server_id=123, settings={"max_binlog_size": "4096"}) as server:
        server.sql(
            "RESET MASTER TO 999990",
            "CREATE DATABASE shop",
            f"CREATE TABLE {T} (id INT PRIMARY KEY, c VARCHAR(400))",
            *(f"INSERT INTO {T} VALUES ({n}, REPEAT('x', 100))" for n in range(1, 9)),
        )
        servers = {"-80": server}
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=2)
        while _numbers(server)[-1] < 999_998:
            server.sql("FLUSH BINARY LOGS")
        with FeedRun(feed) as run:
            run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
            epochs = []
            for n in range(1, 40):
                server.sql(
                    f"UPDATE {T} SET c = CONCAT({n}, REPEAT('y', 350)) WHERE id = {1 + n % 8}",
                    f"INSERT INTO {T} VALUES ({100 + n}, '')",
                    f"DELETE FROM {T} WHERE id = {98 + n}",
                )
                if n % 10 == 0:
                    epochs.append(run.wait_for_log(servers).epoch)
            last = run.wait_for_log(servers)
        assert epochs == sorted(set(epochs))
        numbers = _numbers(server)
        assert numbers[0] < 1_000_000 < numbers[-1]
        found = read(feed, T, last.epoch).arrow().to_pylist()
        assert lake_rows(found, KEY) == source_rows(servers, T, KEY)


def test_a_stretch_across_the_step_read_at_once(spark: SparkContext, tmp_path: Path) -> None:
    with PrivateServer(server_id=124) as server:
        server.sql(
            "RESET MASTER TO 999997",
            "CREATE DATABASE shop",
            f"CREATE TABLE {T} (id INT PRIMARY KEY, c INT)",
            f"INSERT INTO {T} VALUES (1, 0), (2, 0)",
        )
        servers = {"-80": server}
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=2)
        with FeedRun(feed) as run:
            run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
            before = run.wait_for_log(servers)
        for n in range(1, 7):
            server.sql(
                f"UPDATE {T} SET c = {n}", f"INSERT INTO {T} VALUES ({10 + n}, {n})", "FLUSH BINARY LOGS"
            )
        assert _numbers(server)[-1] > 1_000_000
        with FeedRun(feed) as run:
            last = run.wait_for_log(servers)
        assert last.epoch > before.epoch
        found = read(feed, T, last.epoch).arrow().to_pylist()
        assert len(found) == 8
        assert lake_rows(found, KEY) == source_rows(servers, T, KEY)
