"""Children of foreign keys that cascade: at every vgtid a client has the rows that the servers had, though no log says
which of them the engine deleted or changed."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

import catchment
from catchment.config import CopyConfig
from catchment.model.shard import Copy
from catchment.serve.stream.events import VGtid
from catchment.serve.stream.vgtid import given_before
from tests.promises.exact.family import COLUMNS, JOURNAL, TABLES, Family, by_text, filled, is_copied
from tests.promises.stream.conftest import Servers
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import copies_done, source_of

PARENTS = 30


class Families:
    """A writer for each shard, which knows what the server showed behind each of its transactions."""

    def __init__(self, servers: Servers, schema: str, seed: int) -> None:
        self.servers, self.schema = servers, schema
        self.keys: dict[str, tuple[str, ...]] = {f"{schema}.{table}": ("id",) for table in (*TABLES, JOURNAL)}
        for server in servers.values():
            for statement in (
                *TABLES.values(),
                f"CREATE TABLE {JOURNAL} (id INT PRIMARY KEY)",
                *filled(PARENTS),
            ):
                server.sql(statement, database=schema)
        self.writers = {
            shard: Family(server, schema, PARENTS, seed + number)
            for number, (shard, server) in enumerate(servers.items())
        }

    def transact(self) -> None:
        """A transaction on each shard."""
        for one in self.writers.values():
            one.transact()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Transactions all the time."""
        over = threading.Event()

        def write(family: Family) -> None:
            while not over.wait(0.05):
                family.transact()

        threads = [threading.Thread(target=write, args=(one,)) for one in self.writers.values()]
        for one in threads:
            one.start()
        try:
            yield
        finally:
            over.set()
            for one in threads:
                one.join()

    def judged(self, mirror: Mirror) -> Counter[str]:
        """Compare a client's rows with what the servers showed at its vgtid; how many tables were `copying` and how
        many `whole`."""
        counts: Counter[str] = Counter()
        for name, state in given_before(mirror.text).cut.shards.items():
            shard = name.partition("/")[2]
            journal = mirror.rows.get((shard, f"{self.schema}.{JOURNAL}"), {})
            number = max((int(row["id"]) for row in journal.values()), default=0)
            copies: Mapping[str, Copy] = {copy.table.name: copy for copy in state.copies}
            if not copies[JOURNAL].done:
                continue
            for table, columns in COLUMNS.items():
                rows = mirror.rows.get((shard, f"{self.schema}.{table}"), {})
                have = by_text(
                    [tuple(row[column] for column in columns.split(", ")) for row in rows.values()]
                )
                due = [
                    row
                    for row in self.writers[shard].states[number][table]
                    if is_copied(copies[table], row[0])
                ]
                where = f"{shard} {table}, transaction {number}, {copies[table]}"
                assert have == due, f"{where}: lacks {set(due) - set(have)}, has {set(have) - set(due)}"
                counts["whole" if copies[table].done else "copying"] += 1
        return counts


@pytest.mark.promise(
    "streams carry children of cascading foreign keys: every vgtid is one exact state of them, too"
)
def test_every_vgtid(servers: Servers, fresh_schema: Callable[..., str]) -> None:
    """Parents go while children are copied and followed, and the client dies and goes on."""
    schema = fresh_schema(*servers.values())
    families, rng = Families(servers, schema, 5), random.Random(5)
    counts: Counter[str] = Counter()
    mirror, kills = Mirror(families.keys), 2
    with families.busy():
        while kills >= 0:
            stream = catchment.stream(
                source_of(servers),
                rules=[f"{schema}.*"],
                copy=CopyConfig(chunk_rows_max=20),
                vgtid=mirror.text,
            )
            with stream:
                for event in stream:
                    mirror.take(event)
                    if not isinstance(event, VGtid):
                        continue
                    counts += families.judged(mirror)
                    if all(copies_done(mirror.text)) and rng.random() < 0.1:
                        break
            kills -= 1

    assert counts["copying"]
    assert counts["whole"]
