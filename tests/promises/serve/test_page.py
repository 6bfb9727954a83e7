"""The page of a server: who reads, how far, and what subscribers have not acknowledged."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from catchment.serve.stream.events import VGtid
from tests.promises.serve.server import TOKEN, Caller, free_port, server_file, serving, until_copied
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import KEYSPACE


def got(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return str(answer.read().decode())


@pytest.mark.promise("the page of the server shows who reads, and how far")
def test_who_reads_and_how_far(
    tmp_path: Path, servers: Servers, schema: str, feed: Path, callers: Callable[..., Caller]
) -> None:
    port = free_port()
    kept = [{"file": str(feed), "tokens": [TOKEN], "subscribers": True}]
    file = server_file(tmp_path, feeds=kept, status={"port": port})
    with serving(file) as server:
        assert json.loads(got(port, "/status.json")) == {
            "feeds": [{"name": "shop", "readers": [], "clients": [], "subscribers": []}]
        }
        caller = callers(server)
        plain, named = caller.events(), caller.events(subscriber="search")
        for events in (plain, named):
            until_copied(events)
        for one in servers.values():
            one.sql("INSERT INTO t VALUES (9, '<b>')", database=schema)
        for events in (plain, named):
            while not isinstance(next(events), VGtid):
                pass
        (shown,) = json.loads(got(port, "/status.json"))["feeds"]
        assert {client["reading"] for client in shown["clients"]} <= {"own", "shared"}
        assert len(shown["clients"]) == 2
        (subscriber,) = shown["subscribers"]
        assert subscriber["name"] == "search"
        assert subscriber["slip"]["nbytes"] > 0
        page = got(port, "/")
        assert "search at ipv4" in page
        assert f"{KEYSPACE}/-40" in page or not shown["readers"]
        metrics = got(port, "/metrics")
        assert 'catchment_serve_subscriber_slip_bytes{feed="shop",subscriber="search"}' in metrics
        assert 'catchment_serve_clients{feed="shop",reading="shared"}' in metrics
        assert got(port, "/healthz") == "ok\n"
        assert "table" in got(port, "/page.css")
        with pytest.raises(urllib.error.HTTPError):
            got(port, "/else")
        assert [one.name for one in caller.subscribers()] == ["search"]
        assert caller.remove("search")
        assert not caller.remove("search")
        with pytest.raises(grpc.RpcError, match="the subscriber was removed"):
            list(named)
