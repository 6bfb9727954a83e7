"""What a feed asks of each shard until its loop begins, beside its clock: so many logins, so many statements."""

import threading
from pathlib import Path

from catchment import world
from catchment.feed.runner import run_feed
from catchment.watch.report import Observer
from tests.world.sim.calm import Beside
from tests.world.sim.counted import Counted, ports

SHARDS, TABLES, COLUMNS = 3, 10, 3
# Of the shard as a whole; and of each table its largest key and its foreign keys, once.
LOGINS, STATEMENTS, OF_EACH_TABLE = 6, 28, 2


def test_a_new_feed_asks_a_shard_each_thing_once(tmp_path: Path) -> None:
    servers, stop = Counted(SHARDS, TABLES, COLUMNS), threading.Event()
    asked: list[dict[tuple[str, str], int]] = []
    logins: list[dict[str, int]] = []

    def began(standing: object) -> None:
        asked.append(dict(servers.asked))
        logins.append(dict(servers.logins))
        stop.set()

    with world.instead(Beside(servers)):
        run_feed(
            servers.feed(tmp_path),
            until_caught_up=False,
            stop=stop,
            observer=Observer(began=began),
            ports=ports(),
        )
    assert len(logins[0]) == SHARDS
    for shard, count in logins[0].items():
        assert count <= LOGINS, f"{shard}: {count} logins"
        mine = {sql: count for (name, sql), count in asked[0].items() if name == shard}
        told = "\n".join(f"{count} {sql}" for sql, count in sorted(mine.items()))
        assert sum(mine.values()) <= STATEMENTS + OF_EACH_TABLE * TABLES, told
