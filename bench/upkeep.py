"""What a feed costs that has little to do: at rest, with 100 changes a second in one table, and to start.

The feed runs as the real command, with each engine, on one shard; at rest also on 20. Its processes are told apart.
Run: `python -m bench --only upkeep`.
"""

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.commands import caught_up, command, epochs, first_epoch
from bench.feeds import feed
from bench.figures import Figure, figure
from bench.processes import KINDS, cpu_seconds, memory_bytes
from bench.stress import writing
from catchment.config import Feed
from catchment.demo.server import PrivateServer

ENGINES = ("spark", "local")
TABLE = "bench.accounts"
PER_SECOND = 100
MANY_SHARDS = 20
SECONDS = 20.0
WARM_SECONDS = 8.0
# Engines end their workers after half a minute without use.
IDLE_SECONDS = 40.0
Spent = dict[str, float]


def run(runs: int = 1) -> list[Figure]:
    """CPU seconds a second by kind of process at rest and under changes; a start's CPU and wall seconds; memory.

    A start ends with the first epoch that it commits.
    """
    figures: list[Figure] = []
    for engine in ENGINES:
        starts, rests, busy = [], [], []
        for _ in range(runs):
            with _copied(1, engine) as (chosen, (server,)):
                server.sql(f"UPDATE {TABLE} SET sig = 'b' WHERE id = 1")
                before = epochs(chosen)
                with command(chosen) as process:
                    starts.append(first_epoch(chosen, process, before))
                    time.sleep(IDLE_SECONDS)
                    rests.append(_measured(process))
                    update = f"UPDATE {TABLE} SET sig = SHA1(@n) WHERE id = 1 + @n MOD 1000"
                    with writing(server, update, PER_SECOND):
                        time.sleep(WARM_SECONDS)
                        before = epochs(chosen)
                        busy.append(_measured(process))
                        busy[-1]["epochs"] = (epochs(chosen) - before) / SECONDS
        figures += [
            *(_cores(f"a feed at rest ({engine})", kind, rests) for kind in KINDS),
            *(_cores(f"{PER_SECOND} changes/s ({engine})", kind, busy) for kind in KINDS),
            _cores(f"{PER_SECOND} changes/s ({engine})", "epochs", busy, "a second"),
            *(_cores(f"a start ({engine})", kind, starts, "CPU s") for kind in KINDS[:3]),
            _cores(f"a start ({engine})", "wall", starts, "s"),
            _cores(f"a feed at rest ({engine})", "memory", rests, "MB"),
            _cores(f"{PER_SECOND} changes/s ({engine})", "memory", busy, "MB"),
        ]
    with _copied(MANY_SHARDS, "spark") as (chosen, _), command(chosen) as process:
        time.sleep(IDLE_SECONDS)
        many = [_measured(process)]
    return [*figures, *(_cores(f"{MANY_SHARDS} shards at rest", kind, many) for kind in KINDS)]


def _cores(what: str, kind: str, measured: Sequence[Spent], unit: str = "cores") -> Figure:
    whole = [sum(one[k] for k in KINDS) for one in measured]
    return figure(f"{what}, {kind}", [one[kind] for one in measured], unit, "all processes", whole, 3)


@contextmanager
def _copied(shards: int, engine: str) -> Iterator[tuple[Feed, Sequence[PrivateServer]]]:
    """A feed of one table of 1,000 rows that is copied and settled."""
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory, ExitStack() as stack:
        servers = [stack.enter_context(PrivateServer(server_id=n)) for n in range(101, 101 + shards)]
        for server in servers:
            server.sql(
                "CREATE DATABASE bench",
                f"CREATE TABLE {TABLE} (id bigint AUTO_INCREMENT PRIMARY KEY, sig varchar(40))",
                f"INSERT INTO {TABLE} (sig) SELECT SHA1(seq) FROM bench.seq_1_to_1000",
            )
        chosen = feed(Path(directory), servers, engine=engine)
        caught_up(chosen)
        yield chosen, servers


def _measured(process: "subprocess.Popen[bytes]") -> Spent:
    """Cores taken by each kind of process, and the memory of all (MB)."""
    began, before = time.monotonic(), cpu_seconds(process.pid)
    time.sleep(SECONDS)
    after, seconds = cpu_seconds(process.pid), time.monotonic() - began
    cores = {kind: (after[kind] - before[kind]) / seconds for kind in KINDS}
    return {**cores, "memory": memory_bytes(process.pid) / 1e6}
