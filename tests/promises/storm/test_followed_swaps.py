"""Real gh-ost and pt-online-schema-change swap tables of both shards under load, at once or one shard after the other,
and no row is read from the source."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from catchment.config import load
from catchment.demo.server import PrivateServer
from catchment.feed.verify import verify
from catchment.model.table import TableId
from tests.conftest import had
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.promises.storm.swaps import Swap, swaps_for
from tests.world.engines import Here
from tests.world.servers.chosen import VARIABLE, chosen_kind, chosen_server, on_mysql

ROWS = 6000
PAUSE_SECONDS = 0.04
"""Between two turns of 12 rows. gh-ost applies the log before it copies a chunk, and on a busy machine it
applies 500 rows a second: of more, it copies nothing until they end."""
# At once all shards may get a type that does not hold the former one.
ALTERS = {
    True: (
        "ADD COLUMN m{0} VARCHAR(9) NOT NULL DEFAULT 'new', MODIFY n VARCHAR(2{0})",
        "DROP COLUMN m{0}, ADD INDEX i{0} (n)",
        "ENGINE=InnoDB",
    ),
    False: (
        "ADD COLUMN m{0} VARCHAR(9) NOT NULL DEFAULT 'new', MODIFY n BIGINT",
        "DROP COLUMN m{0}, ADD INDEX i{0} (n)",
    ),
}


@pytest.fixture(params=["chosen", "both tools"])
def servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Two shards of the kind that the run is against, and of the nearest one with which both tools work."""
    if request.param == "both tools":
        monkeypatch.setenv(VARIABLE, "mysql-9.7" if on_mysql() else "mariadb-11.8")
    with (
        chosen_server(server_id=141, password="t") as first,
        chosen_server(server_id=142, password="t") as second,
    ):
        yield {"-80": first, "80-": second}


class Load:
    """Writes to the table of every shard until it is told to stop."""

    def __init__(self, servers: Servers, schema: str) -> None:
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(server, schema)) for server in servers.values()
        ]

    def _write(self, server: PrivateServer, schema: str) -> None:
        number = ROWS
        while not self._stop.wait(PAUSE_SECONDS):
            number += 1
            low = number * 61 % ROWS
            server.sql(
                f"INSERT INTO {schema}.t (id, n) VALUES ({number}, {number})",
                # By its key: a tool that waits for the lock of a whole table copies for minutes.
                f"UPDATE {schema}.t SET n = n + 1 WHERE id BETWEEN {low} AND {low + 9}",
                f"DELETE FROM {schema}.t WHERE id = {number - 300}",
            )

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("at_once", [True, False])
def test_no_row_is_read_from_the_source(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, at_once: bool
) -> None:
    tools: dict[str, Swap] = had(lambda: swaps_for(chosen_kind(), slowly=True))
    if not tools:
        pytest.skip(f"no tool works with {chosen_kind()}")
    schema = fresh_schema(*servers.values())
    rows = ", ".join(f"({number}, {number})" for number in range(ROWS))
    for server in servers.values():
        server.sql(
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, n INT)", f"INSERT INTO {schema}.t VALUES {rows}"
        )
    make_feed(tmp_path, servers, schema, chunk_rows=1000, interval="100ms")
    file = tmp_path / "feed.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "engine": "local"}))
    feed = load(file)
    with FeedRun(feed) as run:
        run.wait("the table is copied", lambda done: done[-1].cut.copied)
        copied = len(run.epochs)
        with Load(servers, schema):
            for alter in ALTERS[at_once]:
                for number, tool in enumerate(tools.values()):
                    for some in [servers] if at_once else [{shard: servers[shard]} for shard in servers]:
                        _on_all(some, tool, schema, alter.format(number))
                        run.wait_for_log(servers)  # the RENAME among it
                        run.wait("nothing is stale", lambda done: not done[-1].stale)
        run.wait_for_log(servers)
        epochs = run.epochs[copied:]
    table = TableId(schema, "t")
    generations = {shape.generation for one in epochs for shape in one.shapes if shape.table == table}
    assert len(generations) == 1 + len(ALTERS[at_once]) * len(tools) * (1 if at_once else len(servers))
    assert sum(one.chunk_bytes for one in epochs) == 0
    compared = verify(feed, {one.shard: one for one in feed.endpoints()}, Here())
    assert compared.differences == 0, compared.found


def _on_all(servers: Servers, tool: Swap, schema: str, alter: str) -> None:
    """Alter the table of every shard at once. pt-online-schema-change copies a table in one chunk that it takes for
    small."""
    for server in servers.values():
        server.sql(f"ANALYZE TABLE {schema}.t")
    with ThreadPoolExecutor(len(servers)) as pool:
        list(pool.map(lambda server: tool(server, schema, "t", alter), servers.values()))
