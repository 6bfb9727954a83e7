"""Passwords that a command says: when it is asked, and what a command that fails means."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.config import Feed, load
from catchment.model.errors import ConfigError, NoPassword
from catchment.model.source import Endpoint
from catchment.world import commands as module

FEED = """
name: shop
source: {{keyspace: ks, shards: [{{name: "-80", host: h, user: u, password: {password}}}]}}
tables: [a.b]
sink: {{path: lake}}
state: {state}
"""
Described = Callable[..., Feed]


@pytest.fixture
def described(tmp_path: Path) -> Described:
    def describe(password: object, state: str = "s.db") -> Feed:
        (tmp_path / "feed.yaml").write_text(FEED.format(password=password, state=state))
        return load(tmp_path / "feed.yaml")

    return describe


def endpoint(feed: Feed) -> Endpoint:
    (found,) = feed.endpoints()
    return found


def prints(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_it_is_asked_at_each_login_and_now_and_then_for_tasks(described: Described, tmp_path: Path) -> None:
    secret = tmp_path / "vault"
    found = endpoint(described({"command": ["cat", str(secret)]}))  # not asked until somebody logs in
    secret.write_text("first\n")
    assert found.now.password == "first"
    secret.write_text("second\n")
    assert pickle.loads(pickle.dumps(found)).password == "first"
    assert found.now.password == "second"
    assert pickle.loads(pickle.dumps(found)).password == "second"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["/absent/vault", "hunter2"],
            "the command /absent/vault cannot be started: No such file or directory",
        ),
        (
            prints("import sys; print('hunter2'); sys.exit('hunter2')"),
            f"the command {sys.executable} ended with exit",
        ),
        (prints(""), f"the command {sys.executable} printed nothing"),
        (prints("print('hunter2' * 10_000)"), f"the command {sys.executable} printed more than a password"),
        (prints("import os; os.write(1, b'hunter2\\xff')"), "is not UTF-8 text"),
    ],
)
def test_one_that_fails_is_the_trouble_of_its_shard(
    command: list[str], said: str, described: Described
) -> None:
    found = endpoint(described({"command": command}))
    with pytest.raises(NoPassword, match="shard -80 at h:3306: no password of 'u'") as raised:
        _ = found.now
    assert said in str(raised.value)
    assert raised.value.shard == "-80"
    assert "hunter2" not in str(raised.value).replace(str(command), "")
    assert pickle.loads(pickle.dumps(found)).password == "", "tasks of other shards go on"


def test_one_that_hangs_is_ended_with_all_that_it_started(
    described: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_SECONDS_MAX", 0.2)
    found = endpoint(described({"command": ["sh", "-c", "sleep 1000 & wait"]}))
    with pytest.raises(NoPassword, match="took more than 0 s and was ended"):
        _ = found.now


def test_other_secrets_are_asked_for_once(described: Described) -> None:
    feed = described("x", state='{command: [printf, "mysql://me:hunter2@host/db\\n"]}')
    assert feed.state.get_secret_value() == "mysql+pymysql://me:hunter2@host/db"
    with pytest.raises(ConfigError, match=r"state: the command false ended with exit code 1"):
        described("x", state="{command: ['false']}")


@pytest.mark.parametrize("command", ["vault", "[]", "['']", "[vault, 7]"])
def test_what_is_no_command(command: str, described: Described) -> None:
    with pytest.raises(
        ConfigError, match=r"source\.shards\[0\]\.password: expected .*\{command: \[program, argument\]\}"
    ):
        described(f"{{command: {command}}}")
