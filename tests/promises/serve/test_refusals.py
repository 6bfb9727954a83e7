"""What a server refuses: clearly, at once, for the one who asks alone, and without a secret."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from catchment.serve.stream.events import Row, VGtid
from tests.promises.serve.conftest import Certificate
from tests.promises.serve.server import (
    TOKEN,
    Caller,
    Running,
    feed_file,
    server_file,
    serving,
    until_copied,
    up_to,
)
from tests.promises.stream.conftest import Servers
from tests.world.patience import until
from tests.world.servers.chosen import chosen_server

INVALID = grpc.StatusCode.INVALID_ARGUMENT
CLOSED = (
    grpc.StatusCode.UNAUTHENTICATED,
    "no feed of that name is open to this token: send `authorization: Bearer TOKEN`",
)


@pytest.mark.parametrize(
    "who",
    [{"token": "another-token-of-somebody"}, {"token": ""}, {"token": TOKEN, "feed": "other"}, {"feed": ""}],
)
@pytest.mark.promise("a wrong token and an unknown feed get the same answer")
def test_a_wrong_token_and_an_unknown_feed_are_told_alike(
    server: Running, callers: Callable[..., Caller], who: dict[str, str]
) -> None:
    assert callers(server, **who).refusal() == CLOSED


@pytest.mark.promise("a server with a certificate speaks TLS")
def test_tls(tmp_path: Path, feed: Path, certificate: Certificate) -> None:
    with serving(server_file(tmp_path, feed, tls=certificate.tls())) as server:
        trusting = Caller(server.port, authority=certificate.authority)
        assert len(until_copied(trusting.events())) > 6
        code, _ = Caller(server.port).refusal()
        assert code is grpc.StatusCode.UNAVAILABLE
        code, _ = Caller(server.port, authority=_another(certificate.authority)).refusal()
        assert code is grpc.StatusCode.UNAVAILABLE
        assert len(until_copied(trusting.events())) > 6
        trusting.close()


def _another(authority: bytes) -> bytes:
    """A certificate that is none: nobody is trusted by it."""
    lines = authority.splitlines(keepends=True)
    return b"".join([lines[0], *reversed(lines[1:-1]), lines[-1]])


def test_a_client_with_tls_of_a_server_without(server: Running, certificate: Certificate) -> None:
    code, _ = Caller(server.port, authority=certificate.authority).refusal()
    assert code is grpc.StatusCode.UNAVAILABLE
    assert len(until_copied(Caller(server.port).events())) > 6


DEEP = "select * from t where " + "(" * 2000 + "id = 1" + ")" * 2000
LONG = "select * from t where id = " + " + ".join(["1"] * 3000)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"vgtid": '{"cut": 1}'}, "vgtid: not one that a stream gave"),
        ({"vgtid": "[1]"}, "vgtid: 1 is no position; it has keyspace, shard, gtid and tables"),
        ({"vgtid": '{"version": 99, "cut": {}}'}, "vgtid: it has version 99"),
        ({"vgtid": '[{"keyspace": "other"}]'}, "vgtid: the source has no shard any of keyspace other"),
        ({"vgtid": "[" * 100_000}, "the request is nested too deeply"),
        ({"rules": [{"match": "no_such_table"}]}, "no shard has such a table"),
        ({"rules": [{"match": "hidden"}]}, "no shard has such a table"),
        ({"rules": [{"match": ""}]}, "rule for no table: match is empty"),
        ({"rules": [{"match": "/(/"}]}, "/(/ is not a regular expression of RE2"),
        ({"rules": [{"match": "t" * 1001}]}, "its match has more than 1,000 characters"),
        ({"rules": [{"match": "t", "filter": "x" * 20_000}]}, "its filter has more than 16,384 characters"),
        ({"rules": [{"match": "t", "filter": DEEP}]}, "nested too deeply"),
        ({"rules": [{"match": "t", "filter": LONG}]}, "nested too deeply"),
        ({"rules": [{"match": "t", "filter": "select sleep(9) from t"}]}, "SLEEP(9) is not known here"),
        ({"rules": [{"match": "t", "of": 2, "index": 2}]}, "index 2 of 2 is no slice"),
        ({"rules": [{"match": "t"}] * 101}, "rules: 101 are more than 100"),
        ({"flags": {"heartbeat_interval": 1e-9}}, "flags.heartbeat_interval: at least 0.1 seconds"),
        ({"flags": {"heartbeat_interval": float("nan")}}, "flags.heartbeat_interval: nan is no number"),
        ({"slow": 17}, "slow: 17 is none of its values"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_wrong_request(caller: Caller, asked: dict[str, Any], said: str) -> None:
    code, text = caller.refusal(**asked)
    assert (code, said in text) == (INVALID, True), text[:2000]


def test_a_hostile_regex_holds_up_nobody(caller: Caller, servers: Servers, schema: str) -> None:
    """A regex that Python would try for longer than the world stands."""
    name = "a" * 60
    for server in servers.values():
        server.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY)", database=schema)
    code, text = caller.refusal(rules=[{"match": r"/.*\.(a+)+b/"}, {"match": r"/.*\.(a|aa)+c/"}])
    assert code == INVALID, text


def test_a_vgtid_of_another_source(
    tmp_path: Path, caller: Caller, servers: Servers, schema: str, certificate: Certificate
) -> None:
    last = until_copied(caller.events())[-1]
    assert isinstance(last, VGtid)
    with chosen_server(server_id=151) as other:
        other.sql(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
        shards = {**servers, "-40": other}
        strange = {"only": servers["-40"]}
        for given, code, said in (
            (shards, grpc.StatusCode.DATA_LOSS, "shard ks/-40"),
            (strange, INVALID, "vgtid: it stands for the shards ks/-40, ks/40-c0, ks/c0-"),
        ):
            feed = feed_file(tmp_path, given, [f"{schema}.*"], name="other")
            with serving(server_file(tmp_path, feed)) as server:
                found, text = Caller(server.port, feed="other").refusal(vgtid=last.text)
                assert (found, said in text) == (code, True), text


@pytest.mark.mariadb("a table of another engine")
def test_a_table_that_cannot_be_streamed(caller: Caller, servers: Servers, schema: str) -> None:
    servers["-40"].sql("CREATE TABLE odd (id INT PRIMARY KEY) ENGINE=MyISAM", database=schema)
    code, text = caller.refusal()
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert f"{schema}.odd" in text


def test_a_row_that_is_larger_than_the_client_takes(
    server: Running, caller: Caller, callers: Callable[..., Caller], servers: Servers, schema: str
) -> None:
    for one in servers.values():
        one.sql("INSERT INTO t VALUES (7, REPEAT('x', 10 << 20))", database=schema)
    code, text = caller.refusal()
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert f"a row of {schema}.t on shard ks/" in text
    assert ", id=7 takes 10,48" in text
    assert "and the client takes 4,194,304: raise the limit of its channel, and message_bytes_max" in text
    larger = callers(server, options=[("grpc.max_receive_message_length", 64 << 20)])
    told = until_copied(larger.events(message_bytes_max=64 << 20))
    rows = [event.after for event in told if isinstance(event, Row)]
    assert [len(row["v"]) for row in rows if row and row["id"] == 7] == [10 << 20] * 3


def test_a_request_that_is_too_large(caller: Caller) -> None:
    code, _ = caller.refusal(vgtid="x" * (17 << 20))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(until_copied(caller.events())) > 6


def test_too_many_clients(tmp_path: Path, feed: Path, servers: Servers, schema: str) -> None:
    """Who is here already hears of what is written; who comes when there is room is given all of it."""
    with serving(server_file(tmp_path, feed, clients_max=2)) as server:
        first, second, third = (Caller(server.port) for _ in range(3))
        events = first.events()
        until_copied(events)
        stream = second.batches()
        next(stream)
        code, text = third.refusal()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (
            text
            == "2 clients follow this feed here, and clients_max allows no more; begin later, or at another server"
        )
        servers["-40"].sql("INSERT INTO t VALUES (4, 'd')", database=schema)
        found = up_to(events, lambda event: isinstance(event, Row))
        assert [(event.after or {})["id"] for event in found if isinstance(event, Row)] == [4]
        stream.cancel()
        until("one client is left", lambda: server.feeds.clients <= 1)
        found = until_copied(third.events())
        rows = [(event.after or {})["id"] for event in found if isinstance(event, Row)]
        assert sorted(rows) == sorted([1, 2, 3] * len(servers) + [4])
        for one in (first, second, third):
            one.close()


def test_a_shard_that_is_away_is_told_without_its_address(
    tmp_path: Path, schema: str, servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    with chosen_server(server_id=152) as gone:
        feed = feed_file(tmp_path, {"-": gone}, [f"{schema}.*"])
        port, password = gone.port, gone.password
    with serving(server_file(tmp_path, feed)) as server, caplog.at_level(logging.INFO):
        caller = Caller(server.port)
        code, text = caller.refusal()
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "cannot be read now; try again with the last vgtid (number " in text
        number = text.rpartition("number ")[2].partition(" ")[0]
        assert number in caplog.text
        for secret in (password, TOKEN):
            assert secret not in caplog.text
        for hidden in (str(port), "127.0.0.1", "catchment"):
            assert hidden not in text


@pytest.mark.promise("no secret is in an answer or a log of the server")
def test_no_secret_is_told(
    server: Running,
    callers: Callable[..., Caller],
    servers: Servers,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In what a client sees, and in what the server writes, whatever the client sends."""
    caller = callers(server)
    told = until_copied(caller.events())
    texts = [str(told)]
    for asked in ({"vgtid": "[1]"}, {"rules": [{"match": "/(/"}]}, {"vgtid": json.dumps({"password": 1})}):
        texts.append(caller.refusal(**asked)[1])
    texts.append(callers(server, token="another-token-of-somebody").refusal()[1])
    said = capfd.readouterr()
    texts += [caplog.text, said.out, said.err, repr(vars(server.feeds))]
    for one in servers.values():
        for text in texts:
            assert one.password not in text
    for text in texts:
        assert TOKEN not in text
        assert "another-token" not in text
