"""A stream of the Spark source goes on where its server was restarted with another base name for its log."""

from collections.abc import Callable, Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Purged
from catchment.model.position import LogOffset
from catchment.serve.spark_source.log_end import LogEnd
from tests.layers.serve.conftest import Drive, MakeFeed
from tests.promises.exact.test_log_names import renamed
from tests.world.patience import until
from tests.world.servers.chosen import chosen_server

FreshSchema = Callable[..., str]
KV = "CREATE TABLE kv (k INT PRIMARY KEY, v INT)"


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    with chosen_server(server_id=156) as server:
        server.sql("CREATE DATABASE shop")
        server.sql(KV, "INSERT INTO kv VALUES (1, 0), (2, 0)", database="shop")
        yield server


def at(text: str) -> LogOffset:
    file, _, offset = text.partition(":")
    return LogOffset(file, int(offset))


def write(server: PrivateServer, value: int) -> None:
    server.sql(
        f"UPDATE kv SET v = {value} WHERE k = 1", f"INSERT INTO kv VALUES ({value + 10}, 0)", database="shop"
    )


def changes(value: int) -> list[tuple[str, int, int]]:
    """What `write` did."""
    before = ("update_preimage", 1, value - 1)
    return [before, ("update_postimage", 1, value), ("insert", value + 10, 0)]


@pytest.mark.promise("a stream of the Spark source goes on where a log changed its base name")
def test_a_stream_goes_on_in_files_of_another_name(
    server: PrivateServer, make_feed: MakeFeed, drive: Drive
) -> None:
    """From a checkpoint, over two names at once, and while it runs: each change once, in order."""
    feed = make_feed(server)
    driver = drive(feed, "shop.kv")
    driver.finish()
    copied = len(driver.rows)
    write(server, 1)
    renamed(server, "other")
    write(server, 2)
    renamed(server, "binlog")  # the name from before, with greater numbers
    write(server, 3)
    later = drive(feed, "shop.kv", driver.offset)
    later.finish()
    live = drive(feed, "shop.kv", later.offset)
    write(server, 4)
    until("the change before", lambda: live.step() or bool(live.rows))
    renamed(server, "third")
    write(server, 5)
    until("the change behind", lambda: live.step() and any(row["k"] == 15 for row in live.rows))
    found = [(row["_change_type"], row["k"], row["v"]) for row in later.rows + live.rows]
    assert copied == 2
    assert found == [one for value in range(1, 6) for one in changes(value)]


def test_a_purge_behind_another_name_is_told_as_one(
    server: PrivateServer, make_feed: MakeFeed, drive: Drive
) -> None:
    feed = make_feed(server)
    driver = drive(feed, "shop.kv")
    driver.finish()
    write(server, 1)
    renamed(server, "other")
    server.sql("FLUSH BINARY LOGS")
    newest = server.log_end()[0]
    server.sql(f"PURGE BINARY LOGS TO '{newest}'")
    later = drive(feed, "shop.kv", driver.offset)
    with pytest.raises(Purged, match="has no log file of the name binlog any more"):
        later.finish()


def test_ends_in_files_of_several_names() -> None:
    """The index has binlog.000001, other.000001, binlog.000002."""
    files = ["binlog.000001", "other.000001", "binlog.000002"]
    end = LogEnd(at("binlog.000002:100"), files)
    assert [end.lies_beyond(at(text)) for text in ("binlog.000001:900", "other.000001:900")] == [True, True]
    assert [end.lies_beyond(at(text)) for text in ("binlog.000002:99", "binlog.000002:100")] == [True, False]
    assert not end.lies_beyond(at("third.000001:4")), "that name came later"
    assert end.mended(at("binlog.000002:120")).at == at("binlog.000002:120")
    assert end.mended(at("other.000001:900")) is end
