"""What a server refuses for other reasons than a missing privilege."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, examine, must_be_set_up
from catchment.model.errors import ServerSaid
from catchment.source import pinned
from tests.layers.doctor.test_doctor import assert_only, faults, feed_of

ERROR = Severity.ERROR


@pytest.fixture
def own() -> Iterator[PrivateServer]:
    """A server with one good table, which these tests damage."""
    with PrivateServer(server_id=305) as server:
        server.sql("CREATE DATABASE shop", "CREATE TABLE shop.orders (id bigint PRIMARY KEY)")
        yield server


def test_a_table_that_cannot_be_read_now_is_no_lack_of_a_privilege(
    own: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pinned._PINNED, "lock_wait_timeout", "1")
    own.sql("CREATE TABLE shop.good (id int PRIMARY KEY)")
    with closing(own.connect()) as locking, locking.cursor() as cursor:
        cursor.execute("LOCK TABLES shop.orders WRITE")
        found = examine(feed_of(tmp_path, own)).findings
    assert_only(found, [(ERROR, "shop.orders cannot be read: server error 1205: Lock wait", "wait until")])
    own.sql("ALTER TABLE shop.orders ENGINE=MyISAM")
    (data,) = own.datadir.glob("shop/orders.MYD")
    data.unlink()
    own.sql("FLUSH TABLES")
    found = examine(feed_of(tmp_path, own)).findings
    assert_only(found, [(ERROR, "shop.orders cannot be read: server error", "CHECK TABLE")])


def test_a_log_that_cannot_be_read_is_no_lack_of_a_privilege(own: PrivateServer, tmp_path: Path) -> None:
    with (own.datadir / own.log_end()[0]).open("r+b") as log:
        log.write(bytes(4))
    feed = feed_of(tmp_path, own)
    findings = examine(feed).findings
    assert_only(findings, [(ERROR, "server error 1236: ", "FLUSH BINARY LOGS")])
    assert "1 of 1 chosen tables" in "".join(f.found for f in findings)
    assert "GRANT" not in str(faults(findings))
    with pytest.raises(ServerSaid, match="1236"):
        must_be_set_up(feed.endpoints()[0], feed.tables)
