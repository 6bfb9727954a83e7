"""What the doctor says of lake and state store, to which it writes nothing."""

import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from catchment.config import Feed, MetricsConfig, SparkConfig
from catchment.demo.server import PrivateServer
from catchment.doctor.finding import Finding, Severity
from catchment.doctor.surroundings import check_ports, check_sink, check_spark, check_state
from catchment.model.errors import LeaseLost, StateError
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.world import records
from tests.world.disks import small_disk, unwritable

ERROR, WARNING, OK = Severity.ERROR, Severity.WARNING, Severity.OK


def feed_of(directory: Path, state: str = "") -> Feed:
    """A feed with its lake, and its state store if not told otherwise, in a directory; its shard is nowhere."""
    return Feed.model_validate(
        {
            "name": "shop",
            "source": {"keyspace": "shop", "shards": [{"name": "s", "host": "h", "user": "u"}]},
            "tables": ["shop.*"],
            "sink": {"path": str(directory / "lake")},
            "state": state or str(directory / "shop.state.db"),
        }
    )


def only(findings: list[Finding]) -> tuple[Severity, str, str]:
    """The one finding: how bad, what, and what to do."""
    (finding,) = findings
    return finding.severity, finding.found, finding.remedy


def test_places_that_are_not_there_yet(tmp_path: Path) -> None:
    feed = feed_of(tmp_path / "a" / "b")
    assert only(check_sink(feed))[0] is OK
    severity, found, _ = only(check_state(feed))
    assert severity is OK
    assert found == f"the state store {tmp_path}/a/b/shop.state.db will be made at the first run"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("directory", ["file", "file/below", "x" * 300])
def test_places_that_cannot_be(tmp_path: Path, directory: str) -> None:
    (tmp_path / "file").touch()
    feed = feed_of(tmp_path / directory)
    for findings, place, key in (
        (check_sink(feed), "the lake", "sink.path"),
        (check_state(feed), "the state", "state"),
    ):
        severity, found, remedy = only(findings)
        assert severity is ERROR
        assert found.startswith(f"{place}")
        assert remedy == f"correct `{key}`"


def test_places_mounted_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        feed = feed_of(disk.path)
        Store.open(feed.state.get_secret_value(), "shop").close()
        disk.make_read_only()
        for findings in (check_sink(feed), check_state(feed)):
            severity, found, _ = only(findings)
            assert severity is ERROR
            assert "mounted read-only" in found


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Rights do not tell of it, and the free space alone not of a quota."""
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        feed = feed_of(disk.path)
        severity, found, _ = only(check_sink(feed))
        assert severity is WARNING
        assert found == f"the lake {disk.path}/lake has 1 MiB of free space left"
        (disk.path / "filler").write_bytes(bytes(disk.free))
        severity, found, remedy = only(check_sink(feed))
        assert severity is ERROR
        assert found == f"the lake {disk.path}/lake cannot be written: {disk.path}: No space left on device"
        assert remedy == "correct `sink.path`, or free some space"
        assert [path.name for path in disk.path.iterdir()] == ["filler"]


def test_a_file_system_that_takes_no_files() -> None:
    severity, found, _ = only(check_sink(feed_of(Path("/proc"))))
    assert severity is ERROR
    assert found.startswith("the lake /proc/lake cannot be written: /proc")


def test_the_port_of_the_metrics(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    assert check_ports(feed) == []
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        feed = feed.model_copy(update={"metrics": MetricsConfig(port=port)})
        severity, found, remedy = only(check_ports(feed))
        assert severity is ERROR
        assert found == f"metrics.port: cannot listen on 127.0.0.1:{port} (Address already in use)"
        assert "correct `metrics.port`" in remedy
        with closing(Store.open(feed.state.get_secret_value(), "shop")) as store, hold(store):
            assert check_ports(feed) == [], "it is the port of the run"
    assert only(check_ports(feed))[0] is OK
    nowhere = feed.model_copy(update={"metrics": MetricsConfig(port=port, address="192.0.2.1")})
    assert "cannot listen on 192.0.2.1" in only(check_ports(nowhere))[1]


def test_damaged_state_store(tmp_path: Path) -> None:
    (tmp_path / "shop.state.db").write_bytes(b"no database" * 999)
    severity, found, _ = only(check_state(feed_of(tmp_path)))
    assert severity is ERROR
    assert "move it away" in found


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_of_another_program_stays_as_it_is(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "shop.state.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute(f"PRAGMA journal_mode={mode}")
        other.execute("CREATE TABLE bookmarks (a int)")
    before = file.read_bytes(), file.stat().st_mtime_ns, tmp_path.stat().st_mtime_ns
    severity, found, remedy = only(check_state(feed_of(tmp_path)))
    assert severity is WARNING
    assert found == f"{file} is a database of another program"
    assert "correct `state`" in remedy
    assert (file.read_bytes(), file.stat().st_mtime_ns, tmp_path.stat().st_mtime_ns) == before


def test_an_empty_state_file_stays_empty(tmp_path: Path) -> None:
    file = tmp_path / "shop.state.db"
    file.touch()
    severity, found, _ = only(check_state(feed_of(tmp_path)))
    assert severity is OK
    assert found.endswith("will be made at the first run")
    assert file.stat().st_size == 0


def test_a_state_file_that_may_not_be_written(tmp_path: Path) -> None:
    file = tmp_path / "shop.state.db"
    file.touch()
    with unwritable(file):
        severity, found, remedy = only(check_state(feed_of(tmp_path)))
    assert severity is ERROR
    assert found == f"the state store {file} cannot be written: this user may not read and write it"
    assert remedy == "correct `state`"
    assert only(check_state(feed_of(tmp_path)))[0] is OK


def test_a_feed_that_runs_is_named(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    with closing(Store.open(feed.state.get_secret_value(), "shop")) as store, hold(store):
        severity, found, _ = only(check_state(feed))
    assert severity is OK
    assert "the feed is run by process" in found


def test_options_that_the_driver_does_not_take(tmp_path: Path) -> None:
    severity, found, _ = only(check_state(feed_of(tmp_path, "mysql://u:hunter2@h/db?foo=bar")))
    assert severity is ERROR
    assert "options" in found
    assert "foo" in found
    assert "hunter2" not in found


def test_a_java_that_spark_cannot_use_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    remedy = "install Java 17 or later, or set JAVA_HOME to one"
    for script, fault in (
        ("exit 3", "does not say its version (exit code 3)"),
        ("echo 'openjdk version \"11.0.22\" 2024-01-16' >&2", "is Java 11, too old for Spark"),
    ):
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        assert only(check_spark(feed_of(tmp_path))) == (ERROR, f"{java} (JAVA_HOME) {fault}", remedy)
    java.unlink()
    absent = f"no Java can be started as {java} (JAVA_HOME): No such file or directory"
    assert only(check_spark(feed_of(tmp_path))) == (ERROR, absent, remedy)
    (tmp_path / "spark-env.sh").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert check_spark(feed_of(tmp_path)) == []


def test_a_cluster_that_hears_passwords_is_told(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    assert check_spark(feed) == []

    def on(**conf: str) -> list[Finding]:
        return check_spark(feed.model_copy(update={"spark": SparkConfig(master="spark://h:7077", conf=conf)}))

    severity, found, remedy = only(on())
    assert severity is WARNING
    assert "spark://h:7077" in found
    assert "spark.network.crypto.enabled" in remedy
    assert only(on(**{"spark.network.crypto.enabled": "true"}))[0] is OK


@pytest.fixture
def state_url(shard: PrivateServer, fresh_schema: Callable[..., str]) -> Callable[[str], str]:
    """`state_url(grants)` is the URL of an empty database for a user with these privileges there."""

    def url(grants: str) -> str:
        schema = fresh_schema(shard)
        shard.sql(
            "DROP USER IF EXISTS keeper",
            "CREATE USER keeper IDENTIFIED BY 'pw'",
            f"GRANT {grants} ON {schema}.* TO keeper",
        )
        return f"mysql+pymysql://keeper:pw@{shard.host}:{shard.port}/{schema}"

    return url


@pytest.mark.parametrize(
    ("grants", "severity", "said", "remedy"),
    [
        ("ALL", OK, "will be made at the first run", ""),
        (
            "SELECT, INSERT, UPDATE, DELETE",
            ERROR,
            "CREATE command denied",
            "let its user CREATE tables there",
        ),
    ],
)
def test_a_store_to_be_made_on_a_server(
    tmp_path: Path, shard: PrivateServer, state_url: Callable[[str], str],
    grants: str, severity: Severity, said: str, remedy: str,
) -> None:  # fmt: skip
    url = state_url(grants)
    found = only(check_state(feed_of(tmp_path, url)))
    assert found[0] is severity
    assert said in found[1]
    assert found[2] == remedy
    assert shard.sql(f"SHOW TABLES FROM {url.rpartition('/')[2]}") == []
    with pytest.raises(StateError, match="has not run yet"):
        Store.open(url, "shop", create=False)


def test_a_store_on_a_server(tmp_path: Path, state_url: Callable[[str], str]) -> None:
    """Its LONGBLOBs and its fence behave there as on SQLite."""
    url = state_url("ALL")
    store = Store.open(url, "shop")
    large = msgspec.structs.replace(records.manifest(1), feed="x" * 100_000)
    try:
        with hold(store) as lease:
            store.put_plan(records.plan(1), lease.fence)
            store.put_manifest(large, lease.fence)
            assert "the feed is run by process" in only(check_state(feed_of(tmp_path, url)))[1]
        with hold(store) as again:
            assert again.fence == lease.fence + 1
            with pytest.raises(LeaseLost):
                store.put_plan(records.plan(2), lease.fence)
        assert store.newest() == (records.plan(1), large, None)
        assert only(check_state(feed_of(tmp_path, url)))[1].endswith("can be used")
    finally:
        store.close()


def test_a_store_on_a_server_that_was_made_in_part(
    shard: PrivateServer, state_url: Callable[[str], str]
) -> None:
    """DDL is not undone there: a run that is killed between its tables leaves some."""
    url = state_url("ALL")
    Store.open(url, "shop").close()
    shard.sql("DELETE FROM catchment_version", "DROP TABLE catchment_lease", database=url.rpartition("/")[2])
    with pytest.raises(StateError, match="has not run yet"):
        Store.open(url, "shop", create=False)
    Store.open(url, "shop").close()
    Store.open(url, "shop", create=False).close()
