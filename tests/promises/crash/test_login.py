"""A password is changed on a shard and its sessions are ended: other shards go on, and the file is read again, or the
command asked again."""

from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import ends, goes_on_without, written


@pytest.mark.promise("a shard that refuses a login holds up itself alone, and password files are read again")
def test_a_password_that_is_rotated(pair: dict[str, PrivateServer], live: MakeLife, tmp_path: Path) -> None:
    server = pair["-80"]
    life = live(pair)
    file = tmp_path / "password"
    file.write_text("first\n")
    user = f"rotating_{life.schema}"
    server.sql(f"CREATE USER {user} IDENTIFIED BY 'first'", *_granted(server, user))
    life.describe({"-80": {"user": user, "password": {"file": str(file)}}})
    life.load(40)
    run = life.told()
    try:
        run.wait_for("caught_up")
        with written(life):
            server.sql(f"ALTER USER {user} IDENTIFIED BY 'second'")
            _end_sessions(server, user)
            away = run.wait_for("shard", shard="-80", state="away", error="LoginRefused")
            assert f"user '{user}' is refused" in away["message"]
            goes_on_without(run, "-80", pair)
            file.write_text("second\n")
            run.wait_for("shard", shard="-80", state="back")
        run.wait_for_log(ends(pair))
        run.process.terminate()
        run.ended()
        life.must_be_exact()
    finally:
        server.sql(f"DROP USER {user}")


@pytest.mark.promise("a command says a password at each login, and one that fails holds up its shard alone")
def test_a_password_that_a_command_says(
    pair: dict[str, PrivateServer], live: MakeLife, tmp_path: Path
) -> None:
    server = pair["-80"]
    life = live(pair)
    secret = tmp_path / "vault"
    secret.write_text("first\n")
    user = f"asked_{life.schema}"
    server.sql(f"CREATE USER {user} IDENTIFIED BY 'first'", *_granted(server, user))
    life.describe({"-80": {"user": user, "password": {"command": ["cat", str(secret)]}}})
    life.load(40)
    run = life.told()
    try:
        run.wait_for("caught_up")
        with written(life):
            secret.unlink()
            server.sql(f"ALTER USER {user} IDENTIFIED BY 'second'")
            _end_sessions(server, user)
            away = run.wait_for("shard", shard="-80", state="away", error="NoPassword")
            assert f"no password of '{user}': the command cat ended with exit code 1" in away["message"]
            goes_on_without(run, "-80", pair)
            secret.write_text("second\n")
            run.wait_for("shard", shard="-80", state="back")
        run.wait_for_log(ends(pair))
        run.process.terminate()
        assert not [one for one in ("first", "second") if one in run.ended().said]
        life.must_be_exact()
    finally:
        server.sql(f"DROP USER {user}")


def _granted(server: PrivateServer, user: str) -> list[str]:
    """What the feed's user may, for another one."""
    ((whole,), *_) = server.sql("SHOW GRANTS FOR catchment")
    privileges = str(whole).removeprefix("GRANT ").partition(" ON ")[0]
    return [f"GRANT {privileges} ON *.* TO {user}"]


def _end_sessions(server: PrivateServer, user: str) -> None:
    for (number,) in server.sql(f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'"):
        with suppress(pymysql.err.MySQLError):  # it has ended by itself
            server.sql(f"KILL {number}")
