"""Servers that have names of tables in lower case, whatever a statement writes (lower_case_table_names=1)."""

from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.exact.manifests import born_on, carried, manifests, must_be_equal, newest, stale
from tests.promises.exact.steps import Steps, run_here

MADE = ("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO T VALUES (1, 1), (2, 2)")


@pytest.mark.mariadb("MySQL takes the setting when its data directory is made, and no later")
@pytest.mark.promise("names of tables in statements are taken as the server takes them")
def test_names_are_those_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PrivateServer(server_id=41, settings={"lower_case_table_names": 1}) as server:
        server.sql("CREATE DATABASE Shop")
        run_here(monkeypatch)
        steps = Steps(tmp_path, {"a": server}, "shop", new_tables="carry")
        steps.everywhere(*MADE)
        steps.run()
        steps.everywhere(
            "ALTER TABLE T ADD N2 INT NOT NULL DEFAULT 5",
            "INSERT INTO T VALUES (3, 3, 3)",
            "CREATE TABLE SHOP.NewOne (id INT PRIMARY KEY, n INT)",
            "INSERT INTO newONE VALUES (1, 1)",
            "CREATE TABLE Gone (id INT PRIMARY KEY)",
            "DROP TABLE GONE",
        )
        steps.run()
        must_be_equal(steps, {"t": ("id", "n", "N2"), "newone": ("id", "n")})
        assert born_on(manifests(steps), "newone") == {"a"}
        steps.everywhere(
            "TRUNCATE T", "INSERT INTO t VALUES (7, 7, 7)", "ALTER TABLE Shop.T MODIFY n BIGINT NULL"
        )
        steps.run()
        must_be_equal(steps, {"t": ("id", "n", "N2"), "newone": ("id", "n")})
        steps.everywhere("RENAME TABLE NewOne TO NewTwo", "INSERT INTO NewTwo VALUES (2, 2)")
        steps.run()
        steps.everywhere("INSERT INTO T VALUES (8, 8, 8)")
        steps.run()
        must_be_equal(steps, {"t": ("id", "n", "N2"), "newtwo": ("id", "n")})
        assert carried(newest(steps)) == {"t", "newtwo"}
        assert {one.table.name for manifest in manifests(steps) for one in manifest.stale} <= {"newone"}

        # A migration by hand: the former table enters under its new name, and the new one is copied.
        steps.everywhere("CREATE INDEX I ON T (N)", "DROP INDEX i ON SHOP.T", "UPDATE t SET n = n + 1")
        steps.run()
        assert not stale(newest(steps))
        steps.everywhere(
            "CREATE TABLE t_new LIKE T",
            "INSERT INTO T_New SELECT * FROM t",
            "RENAME TABLE T TO T_old, t_NEW TO T",
            "INSERT INTO T VALUES (9, 9, 9)",
            "DELETE FROM T_OLD WHERE id = 7",
        )
        steps.enter("t_old", "INSERT INTO newtwo SELECT MAX(id) + 1, 0 FROM newtwo")
        steps.renew("INSERT INTO newtwo SELECT MAX(id) + 1, 0 FROM newtwo")
        carries = {"t": ("id", "n", "N2"), "t_old": ("id", "n", "N2"), "newtwo": ("id", "n")}
        must_be_equal(steps, carries)
        assert carried(newest(steps)) == {*carries}
        # And one that is made anew is read from the log.
        steps.everywhere(
            "TRUNCATE T",
            "DROP TABLE T",
            "CREATE TABLE T (id INT PRIMARY KEY, z INT)",
            "INSERT INTO t VALUES (1, 1)",
        )
        steps.enter("t", "INSERT INTO newtwo SELECT MAX(id) + 1, 0 FROM newtwo")
        must_be_equal(steps, carries | {"t": ("id", "z")})
        assert born_on(manifests(steps), "t") == {"a"}
        assert not stale(newest(steps))
