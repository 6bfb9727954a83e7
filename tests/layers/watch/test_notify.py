"""Notices reach a command and an address, in bounded time; a failure is logged once and ends nothing."""

import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from catchment.config import NotifyConfig, NotifyEvent, load
from catchment.model.errors import ConfigError
from catchment.watch import notify
from catchment.watch.notify import Notifier

TOKEN = "tok3n-of-the-hook"
_WRITE = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


class Hook:
    """An HTTP server that takes notices, or answers with another status."""

    def __init__(self) -> None:
        self.status = 204
        self.taken: list[tuple[str, str, dict[str, Any]]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.taken.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(hook.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                hook.taken.append((self.path, "GET", {}))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/{TOKEN}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    opened = Hook()
    yield opened
    opened.close()


def to_file(file: Path) -> tuple[str, ...]:
    """A command that adds what it is told to a file."""
    return (sys.executable, "-c", _WRITE, str(file))


def test_a_command_and_an_address_get_the_same_notice(hook: Hook, tmp_path: Path) -> None:
    config = NotifyConfig.model_validate({"command": to_file(tmp_path / "told"), "url": hook.url})
    notifier = Notifier("shop", config)
    error = {"kind": "Diverged", "message": "shard -80: ...", "shard": "-80"}
    notifier.tell(NotifyEvent.END, "the run ended with exit code 3", exit_code=3, error=error)
    notifier.close()
    ((path, kind, notice),) = hook.taken
    assert (path, kind) == (f"/{TOKEN}", "application/json")
    assert json.loads((tmp_path / "told").read_text()) == notice
    assert notice.pop("time").endswith("Z")
    assert notice == {
        "feed": "shop",
        "event": "end",
        "message": "the run ended with exit code 3",
        "text": "feed shop: the run ended with exit code 3",
        "exit_code": 3,
        "error": error,
    }


def test_only_events_that_are_asked_for(tmp_path: Path) -> None:
    told = tmp_path / "told"
    notifier = Notifier("shop", NotifyConfig(command=to_file(told), on=(NotifyEvent.END,)))
    notifier.tell(NotifyEvent.START, "begins")
    notifier.tell(NotifyEvent.END, "ends")
    notifier.close()
    assert [json.loads(line)["event"] for line in told.read_text().splitlines()] == ["end"]


def test_what_lasts_is_told_once_until_it_ends(tmp_path: Path) -> None:
    told = tmp_path / "told"
    notifier = Notifier("shop", NotifyConfig(command=to_file(told)))
    for away in ({"-80": "a"}, {"-80": "a, still"}, {"-80": "a", "80-": "b"}, {}, {"-80": "again"}):
        notifier.keep(NotifyEvent.SHARD_AWAY, away)
    notifier.close()
    assert [json.loads(line)["message"] for line in told.read_text().splitlines()] == ["a", "b", "again"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/no/such/program", TOKEN), "No such file or directory"),
        ((sys.executable, "-c", "raise SystemExit(4)", TOKEN), "exit code 4"),
        ((sys.executable, "-c", "import time; time.sleep(600)", TOKEN), "more than 1 s"),
    ],
)
def test_a_command_that_fails_is_logged_once(
    command: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notify, "SEND_SECONDS_MAX", 1.0)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        notifier = Notifier("shop", NotifyConfig(command=command))
        for _ in range(3):
            notifier.tell(NotifyEvent.START, "begins")
        assert time.monotonic() - began < 60
        notifier.close()
    (record,) = caplog.records
    assert record.message.startswith("feed shop: notify.command failed, and the feed goes on: ")
    assert said in record.message
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("status", "said"), [(500, "HTTP status 500"), (302, "HTTP status 302"), (0, "refused")]
)
def test_an_address_that_fails_is_logged_once_without_its_secret(
    hook: Hook, status: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook.status = status
    if not status:
        hook.close()
    with caplog.at_level(logging.WARNING):
        notifier = Notifier("shop", NotifyConfig.model_validate({"url": hook.url}))
        for _ in range(2):
            notifier.tell(NotifyEvent.START, "begins")
        notifier.close()
        assert len(caplog.records) == 1
    assert said in caplog.text
    assert TOKEN not in caplog.text
    assert "GET" not in [kind for _, kind, _ in hook.taken]


def test_an_address_that_does_not_answer_holds_up_nothing_but_the_end(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "END_SECONDS_MAX", 1.0)
    answered = threading.Event()
    monkeypatch.setattr(notify, "_post", lambda url, notice: answered.wait())
    notifier = Notifier("shop", NotifyConfig.model_validate({"url": hook.url}))
    for _ in range(1000):
        notifier.tell(NotifyEvent.START, "begins")
    notifier.close()
    answered.set()


def described(directory: Path, **told: object) -> Path:
    """A feed file with this section `notify`."""
    shard = {"name": "s", "host": "h", "user": "u"}
    feed = {
        "name": "shop",
        "source": {"keyspace": "shop", "shards": [shard]},
        "tables": ["shop.*"],
        "sink": {"path": "lake"},
        "notify": told,
    }
    (directory / "feed.yaml").write_text(yaml.safe_dump(feed))
    return directory / "feed.yaml"


def test_the_address_is_a_secret_of_the_feed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f"https://hooks.example/{TOKEN}")
    feed = load(described(tmp_path, url={"env": "HOOK"}, on=["start", "end"]))
    assert feed.notify.url is not None
    assert feed.notify.url.get_secret_value() == f"https://hooks.example/{TOKEN}"
    assert TOKEN not in repr(feed)
    monkeypatch.delenv("HOOK")
    load(tmp_path / "feed.yaml", secrets=("state",))
    with pytest.raises(ConfigError, match=r"notify.url: environment variable HOOK is not set"):
        load(tmp_path / "feed.yaml")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"url": f"ftp://{TOKEN}"}, "notify.url: expected an address that begins with http:// or https://"),
        ({"command": []}, "notify.command"),
        ({"on": ["noon"]}, r"notify.on\[0\]"),
    ],
)
def test_a_section_that_is_wrong(tmp_path: Path, told: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        load(described(tmp_path, **told))
    assert TOKEN not in str(caught.value)
