"""Failures that other systems that follow a log were seen to have, one test for each. Here none of them loses a row.

Their source: issues and releases of Debezium, Flink CDC, gh-ost, Vitess, Airbyte, Hudi and others. Number 4 is left
out, sets of GTIDs with gaps, tags and several UUIDs: a feed does not go on at another server, failover is not built.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

import catchment
from catchment.demo.server import PrivateServer
from catchment.feed.verify import verify
from catchment.model.errors import ConnectionLost
from catchment.state.faults import Fault
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_newcomers import judged
from tests.promises.exact.test_orders import newest, running, wait
from tests.promises.exact.throttled import status
from tests.world.engines import Here
from tests.world.held import held_commit, release
from tests.world.proxy import Proxy, dump_begins, execute_begins
from tests.world.purged import begin_anew
from tests.world.servers.chosen import on_mysql

T = "CREATE TABLE t (id INT PRIMARY KEY, n INT)"
PROOF = "INSERT INTO proof VALUES (NULL)"
PROVING = ("CREATE TABLE proof (id INT PRIMARY KEY AUTO_INCREMENT)", PROOF)


def small_chunks(steps: Steps, rows: int) -> None:
    steps.set(copy={"chunk_rows_max": rows, "group_time": "0s", "groups_per_shard": 1})


def through(steps: Steps, proxy: Proxy, shard: int) -> None:
    """Have the feed reach a shard by a proxy."""
    source = yaml.safe_load(steps.file.read_text())["source"]
    source["shards"][shard].update(host=proxy.host, port=proxy.port)
    steps.set(source=source)


@contextmanager
def proxied(steps: Steps, shard: str) -> Iterator[Proxy]:
    server = steps.servers[shard]
    with Proxy(server.host, server.port) as proxy:
        through(steps, proxy, list(steps.servers).index(shard))
        yield proxy


def shows(steps: Steps, row: tuple[str, int]) -> bool:
    return row in steps.lake("t", "id")


def alone(server: PrivateServer, schema: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A feed of one shard."""
    run_here(monkeypatch)
    return Steps(directory, {"a": server}, schema)


def test_01_a_commit_that_stands_in_the_log_and_is_not_visible_while_chunks_are_read(
    own: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = alone(own, fresh_schema(own), tmp_path, monkeypatch)
    steps.sql("a", T, "INSERT INTO t SELECT seq, 0 FROM mysql.seq_1_to_200")
    small_chunks(steps, 30)
    commit = held_commit(own, "UPDATE t SET n = 1", "DELETE FROM t WHERE id > 150", database=steps.schema)
    try:
        with running(steps):
            wait(lambda: newest(steps).cut.copied)
            assert commit.held or on_mysql()  # MySQL 8.0 has no plugin that holds it for longer than a second
            commit.release()
    finally:
        release(own)
    steps.must_be_equal("t", "id", "n")
    assert steps.lake("t", "n") == [("a", 1)] * 150


KEYS = {
    "bytes": ("VARBINARY(9)", "CONCAT(CHAR(255 - seq), CHAR(0), CHAR(seq))"),
    "positive": ("BIGINT UNSIGNED", "18446744073709551615 - seq"),
    "collated": (
        "VARCHAR(20) COLLATE utf8mb4_general_ci",
        "CONCAT(ELT(1 + seq % 4, 'a', 'B', 'é', 'Z'), seq)",
    ),
    "uuids": (
        "UUID",
        "CONCAT(LPAD(HEX(seq * 37 % 256), 8, '0'), '-0000-1000-8000-', LPAD(HEX(seq), 12, '0'))",
    ),
}


def test_02_bounds_of_chunks_in_the_order_that_the_server_has_for_each_kind_of_key(steps: Steps) -> None:
    small_chunks(steps, 7)
    kinds = {name: kind for name, kind in KEYS.items() if name != "uuids" or not on_mysql()}
    rows = "mysql.seq_1_to_60"
    for name, (kind, value) in kinds.items():
        steps.everywhere(
            f"CREATE TABLE {name} (k {kind} PRIMARY KEY, n INT) CHARACTER SET utf8mb4",
            f"INSERT INTO {name} SELECT {value}, seq FROM {rows}",
        )
    steps.everywhere(
        "CREATE TABLE composite (a INT, b VARCHAR(5), n INT, PRIMARY KEY (a, b))",
        f"INSERT INTO composite SELECT seq % 5, CONCAT('x', seq), seq FROM {rows}",
    )
    steps.run()
    for name in (*kinds, "composite"):
        steps.everywhere(
            f"UPDATE {name} SET n = n + 100 WHERE n % 7 = 0", f"DELETE FROM {name} WHERE n % 5 = 0"
        )
    for name in (*kinds, "composite"):
        steps.must_be_equal(name, "n")


def test_03_a_log_that_breaks_off_inside_an_event_of_many_rows_and_a_large_transaction(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(200))")
    steps.run()
    rows = "SELECT seq, 0, REPEAT('x', 200) FROM mysql.seq_1_to_20000"
    steps.everywhere(
        "BEGIN", f"INSERT INTO t {rows}", "UPDATE t SET n = 1", "DELETE FROM t WHERE id % 3 = 0", "COMMIT"
    )
    with proxied(steps, "-80") as proxy:
        for size in (9_000, 1_000_003, 5_000_001):
            proxy.cut_after(size, after=dump_begins)
            steps.die_again_and_again(Fault.DURING_READ, 1)
        steps.must_be_equal("t", "id", "n")
        assert proxy.cuts == 3


def test_05_the_numbers_of_log_files_get_a_digit_more(
    own: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.sql("RESET MASTER TO 999998")
    steps = alone(own, fresh_schema(own), tmp_path, monkeypatch)
    steps.sql("a", T, "INSERT INTO t VALUES (1, 0), (2, 0)")
    for number in range(5):
        steps.sql("a", f"UPDATE t SET n = {number}", f"INSERT INTO t VALUES ({number + 10}, 0)")
        steps.must_be_equal("t", "id", "n")
        own.sql("FLUSH BINARY LOGS")
    assert newest(steps).cut.positions["a"].at.file.endswith(".1000002")


def test_06_shards_that_are_copied_at_very_different_times_while_keys_change_and_rows_go(
    steps: Steps,
) -> None:
    small_chunks(steps, 40)
    steps.everywhere(T)
    steps.sql("-80", "INSERT INTO t SELECT seq, 0 FROM mysql.seq_1_to_20")
    steps.sql("80-", "INSERT INTO t SELECT seq, 0 FROM mysql.seq_1_to_6000")
    with running(steps):
        wait(lambda: newest(steps).cut.shards["-80"].copied)
        assert not newest(steps).cut.shards["80-"].copied
        for key in (3, 7, 11, 17):
            steps.everywhere(
                f"UPDATE t SET id = -id WHERE id = {key}",
                f"DELETE FROM t WHERE id = {key + 1}",
                f"UPDATE t SET n = n + 1 WHERE id % 50 = {key}",
            )
        steps.sql(
            "80-", "UPDATE t SET id = -id WHERE id > 2990 AND id < 3000", "DELETE FROM t WHERE id % 97 = 0"
        )
        wait(lambda: newest(steps).cut.copied)
    steps.must_be_equal("t", "id", "n")
    assert judged(steps, [f"{steps.schema}.t"]) > 4


def test_07_three_shards_of_which_one_is_idle_and_one_is_down(
    servers: Servers,
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_here(monkeypatch)
    first, second = servers.values()
    all_three = {"busy": first, "idle": second, "down": shard}
    steps = Steps(tmp_path, all_three, fresh_schema(*all_three.values()))
    steps.everywhere(T, "INSERT INTO t VALUES (1, 0), (2, 0)")
    steps.set(epoch={"interval": "50ms", "tick": "50ms", "away_max": "10min"})
    with proxied(steps, "down") as proxy:
        steps.must_be_equal("t", "id", "n")
        with running(steps):
            steps.everywhere("UPDATE t SET n = 1")
            wait(lambda: steps.lake("t", "n") == steps.source("t", "n"))
            proxy.refusing = True
            proxy.cut(reset=True)
            for number in range(3, 6):
                steps.sql("busy", f"INSERT INTO t VALUES ({number}, 9)", "UPDATE t SET n = n + 1")
                steps.sql("down", f"INSERT INTO t VALUES ({number}, 7)")
                wait(partial(shows, steps, ("busy", number)))
            assert set(newest(steps).absent) == {"down"}
            assert [row for row in steps.lake("t", "id") if row[0] != "busy"] == [
                (name, key) for name in ("down", "idle") for key in (1, 2)
            ]
            proxy.refusing = False
            wait(lambda: not newest(steps).absent)
        steps.must_be_equal("t", "id", "n")


def test_08_a_server_on_which_nothing_happens_any_more(steps: Steps) -> None:
    """No event closes a window there; a copy has to end all the same."""
    small_chunks(steps, 7)
    steps.everywhere(T, "INSERT INTO t SELECT seq, seq FROM mysql.seq_1_to_50")
    ends = [server.log_end() for server in steps.servers.values()]
    steps.must_be_equal("t", "id", "n")
    assert newest(steps).cut.copied
    assert ends == [server.log_end() for server in steps.servers.values()]


def test_09_ddl_inside_a_copy_while_nobody_runs_the_feed_on_other_tables_and_by_a_swap(steps: Steps) -> None:
    small_chunks(steps, 20)
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.other", f"!{steps.schema}._*"])
    steps.everywhere(T, "INSERT INTO t SELECT seq, 0 FROM mysql.seq_1_to_2000", *PROVING)
    steps.everywhere("CREATE TABLE other (id INT PRIMARY KEY)")
    with running(steps):
        wait(lambda: any(copy.copied for copy in newest(steps).cut.copies if copy.table.name == "t"))
        assert not newest(steps).cut.copied
        steps.everywhere("ALTER TABLE t ADD COLUMN inside INT", "UPDATE t SET inside = id WHERE id % 3 = 0")
        steps.everywhere("ALTER TABLE other ADD COLUMN m INT, DROP PRIMARY KEY", "DROP TABLE other", PROOF)
        wait(lambda: newest(steps).cut.copied)
    steps.must_be_equal("t", "id", "n", "inside")
    steps.everywhere(
        "ALTER TABLE t DROP COLUMN n, ADD COLUMN offline INT DEFAULT 4", "DELETE FROM t WHERE id > 400"
    )
    steps.must_be_equal("t", "id", "inside", "offline")
    steps.everywhere(
        "CREATE TABLE _t_gho LIKE t",
        "ALTER TABLE _t_gho ADD COLUMN swapped INT NOT NULL DEFAULT 3",
        "INSERT INTO _t_gho (id, inside, offline) SELECT id, inside, offline FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "DROP TABLE _t_del",
        PROOF,
    )
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "inside", "offline", "swapped")


VALUES = {
    "TINYINT UNSIGNED": "255",
    "BIGINT UNSIGNED": "18446744073709551615",
    "DECIMAL(38,10)": "-1234567890123456789012345678.0123456789",
    "DECIMAL(65,30)": "98765432101234567890123456789012345.6789",
    "FLOAT": "16777217",
    "DOUBLE": "-1e-300",
    "BIT(17)": "b'10000000000000001'",
    "YEAR": "1999",
    "DATE": "'1000-01-01'",
    "TIME(6)": "'-838:59:58.999999'",
    "DATETIME(6)": "'9999-12-31 23:59:59.000001'",
    "TIMESTAMP(3) NULL": "'2038-01-19 03:14:07.999'",
    "CHAR(9)": "'é  '",
    "VARCHAR(40) CHARACTER SET latin1": "'naïve'",
    "TEXT": "CONCAT('😀', REPEAT('x', 70000 % 9000))",
    "BINARY(5)": "x'00ff00'",
    "VARBINARY(9)": "x'ff00'",
    "BLOB": "x'00'",
    "ENUM('x','y','é')": "'é'",
    "SET('x','y','z')": "'x,z'",
    "JSON": """'{"b": [1, 1.50, null, "é"], "a": {}}'""",
}


def test_10_a_value_of_every_type_that_a_select_gave_and_the_log(steps: Steps) -> None:
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(VALUES))
    values = ", ".join(VALUES.values())
    nothing = ", ".join(["NULL"] * len(VALUES))
    made = "SET NAMES utf8mb4"
    steps.everywhere(made, f"CREATE TABLE t (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    steps.everywhere(made, f"INSERT INTO t VALUES (1, {values}), (2, {nothing})")
    steps.run()
    steps.everywhere(made, f"INSERT INTO t VALUES (3, {values}), (4, {nothing})")
    steps.run()
    names = [f"c{number}" for number in range(len(VALUES))]
    held = catchment.read(steps.feed, f"{steps.schema}.t").arrow().to_pylist()
    for shard in steps.servers:
        rows = {row["id"]: [row[name] for name in names] for row in held if row["_shard"] == shard}
        assert rows[1] == rows[3]
        assert rows[2] == rows[4] == [None] * len(names)
        assert None not in rows[1]


def test_11_a_connection_that_is_killed_in_the_middle_of_a_chunk_is_no_end_of_the_table(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(100))")
    steps.everywhere("INSERT INTO t SELECT seq, REPEAT('x', 100) FROM mysql.seq_1_to_3000")
    with proxied(steps, "80-") as proxy:
        proxy.cut_after(60_000, after=execute_begins(), times=2)
        steps.must_be_equal("t", "id")
        assert proxy.cuts == 2
    assert len(steps.lake("t", "id")) == 6000


def test_12_a_verification_whose_stream_breaks_off_fails_and_names_no_rows(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(100))")
    steps.everywhere("INSERT INTO t SELECT seq, REPEAT('x', 100) FROM mysql.seq_1_to_3000")
    with proxied(steps, "-80") as proxy:
        steps.run()
        endpoints = {one.shard: one for one in steps.feed.endpoints()}
        proxy.cut_after(60_000, after=execute_begins(), times=1000)
        with pytest.raises(ConnectionLost, match="shard -80"):
            verify(steps.feed, endpoints, Here())
        proxy.cut_after(0, after=execute_begins(), times=0)
        assert verify(steps.feed, endpoints, Here()).differences == 0


def test_13_lag_grows_while_a_copy_is_throttled_and_while_nobody_runs_the_feed(steps: Steps) -> None:
    steps.everywhere(T, "INSERT INTO t SELECT seq, seq FROM mysql.seq_1_to_500")
    metrics = steps.file.parent / "feed.prom"
    flag = steps.file.parent / "wait"
    flag.touch()
    copy = {
        "chunk_rows_max": 20,
        "group_time": "0s",
        "groups_per_shard": 1,
        "throttle": {"flag_file": "wait"},
    }
    steps.set(copy=copy, metrics={"file": str(metrics)})

    def throttled() -> float:
        return samples(metrics).get("catchment_copy_throttled -80", 0.0) if metrics.exists() else 0.0

    with running(steps):
        wait(lambda: throttled() > 0)
        before = throttled()
        wait(lambda: throttled() > before + 1)
        flag.unlink()
        wait(lambda: newest(steps).cut.copied)
    steps.everywhere("UPDATE t SET n = 0")
    then = status(steps).lag_seconds
    assert then is not None
    before_this = then
    wait(lambda: (status(steps).lag_seconds or 0.0) > before_this + 1)
    steps.must_be_equal("t", "id", "n")


def test_14_the_same_key_on_two_shards_and_a_row_that_moves_between_them(steps: Steps) -> None:
    steps.everywhere(T)
    steps.sql("-80", "INSERT INTO t VALUES (1, 10), (2, 20)")
    steps.sql("80-", "INSERT INTO t VALUES (1, 11)")
    steps.must_be_equal("t", "id", "n")
    steps.sql("-80", "DELETE FROM t WHERE id IN (1, 2)")
    steps.sql("80-", "INSERT INTO t VALUES (2, 20)", "UPDATE t SET n = 12 WHERE id = 1")
    steps.must_be_equal("t", "id", "n")
    assert steps.lake("t", "id", "n") == [("80-", 1, 12), ("80-", 2, 20)]
    steps.sql("80-", "DELETE FROM t WHERE id = 2")
    steps.sql("-80", "INSERT INTO t VALUES (2, 21)")
    steps.must_be_equal("t", "id", "n")


def test_15_a_log_that_is_purged_beyond_what_was_read_is_told_at_once_and_an_order_copies_again(
    own: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = alone(own, fresh_schema(own), tmp_path, monkeypatch)
    steps.sql("a", T, "INSERT INTO t VALUES (1, 10), (2, 20)", *PROVING)
    steps.must_be_equal("t", "id", "n")
    exact = steps.lake("t", "id", "n")
    steps.sql("a", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (3, 30)")
    begin_anew(own)
    steps.run()
    assert {one.table.name: one.waits for one in newest(steps).stale} == {"t": True, "proof": True}
    assert all("catchment dump start" in one.reason for one in status(steps).tables)
    assert steps.lake("t", "id", "n") == exact
    catchment.dump(steps.file, "start", wait=0)
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "n")
