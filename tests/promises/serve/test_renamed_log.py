"""A server that is restarted with another base name for its log: a subscriber goes on from what it acknowledged before,
in the copy and behind it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import LogRenamed
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.subscribers import Subscribers
from catchment.serve.stream.events import Event, Row, VGtid
from tests.promises.exact.test_log_names import renamed
from tests.promises.serve.test_subscribers import opened, served
from tests.promises.stream.mirror import Mirror
from tests.world.servers.chosen import chosen_server

NAME = "search"
ASK = Ask(rules=("shop.*",))


def told(row: int) -> Callable[[list[Event]], bool]:
    """Whether this row of kv came."""
    return lambda events: any(
        isinstance(event, Row) and event.after is not None and event.after["k"] == row for event in events
    )


def followed(server: Subscribers, mirror: Mirror, row: int) -> list[str]:
    """The vgtids up to a row, of which the last ones are acknowledged. A stream ends with each name of the log, and the
    subscriber comes back."""
    given: list[str] = []
    while True:
        events: list[Event] = []
        try:
            with opened(server, ASK, NAME) as client:
                while not (told(row)(events) and isinstance(events[-1], VGtid)):
                    events += client.pull()
        except LogRenamed:
            pass
        for event in events:
            mirror.take(event)
            if isinstance(event, VGtid):
                last = server.acknowledge(NAME, event.text)
                given.append(event.text)
                import json

                print(
                    "V",
                    json.loads(event.text)["cut"]["epoch"],
                    json.loads(event.text)["cut"]["shards"]["ks/-"]["position"]["at"],
                    json.loads(event.text)["cut"]["shards"]["ks/-"].get("sealed"),
                    last,
                )
        if told(row)(events):
            assert last, "it is later than what was acknowledged before"
            return given


@pytest.mark.promise("a subscriber goes on where a log changed its base name")
def test_a_subscriber_goes_on(tmp_path: Path) -> None:
    with chosen_server(server_id=157) as server:
        server.sql("CREATE DATABASE shop")
        server.sql(
            "CREATE TABLE kv (k INT PRIMARY KEY, v INT)", "INSERT INTO kv VALUES (1, 0)", database="shop"
        )
        mirror = Mirror({"shop.kv": ("k",)})
        with served({"-": server}, tmp_path / "state.db") as serving:
            before = followed(serving, mirror, 1)
            write(server, 2)
            renamed(server, "other")
            write(server, 3)
            before += followed(serving, mirror, 3)
            write(server, 4)
            renamed(server, "third")
            server.sql("TRUNCATE TABLE kv", database="shop")
            renamed(server, "other")  # the name from before, with greater numbers
            write(server, 5)
            given = followed(serving, mirror, 5)
            files = {at(text).partition(".")[0] for text in given}
            assert files == {"other", "third"}, "no stretch of log leads over files of another name"
            assert not serving.acknowledge(NAME, given[-1]), "it has acknowledged that"
            assert not any(serving.acknowledge(NAME, text) for text in before + given), "and more than these"
        with server.connect(database="shop").cursor() as cursor:
            cursor.execute("SELECT k, v FROM kv")
            want = {*cursor.fetchall()}
        assert {(row["k"], row["v"]) for row in mirror.rows["-", "shop.kv"].values()} == want
        assert mirror.restarts == 0


def at(vgtid: str) -> str:
    """The file in which the shard stands."""
    return str(json.loads(vgtid)["cut"]["shards"]["ks/-"]["position"]["at"]["file"])


def write(server: PrivateServer, key: int) -> None:
    server.sql(f"UPDATE kv SET v = {key}", f"INSERT INTO kv VALUES ({key}, 0)", database="shop")
