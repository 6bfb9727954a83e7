"""What an epoch with little of much asks: of each shard that moved one login, and of the state store few statements."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from catchment import world
from catchment.feed.runner import run_feed
from catchment.watch.report import Observer, Report
from tests.world.sim.calm import Beside
from tests.world.sim.counted import Counted, ports

SHARDS, TABLES, COLUMNS = 4, 20, 3
WARM, EPOCHS = 3, 5
# The session of a segment says how often RESET was said, and is then read from.
LOGINS = 1
# An epoch writes three records: plan, manifest and commit.
STATEMENTS_OF_A_RECORD = 4


def test_few_logins_and_few_statements(tmp_path: Path) -> None:
    servers, stop = Counted(SHARDS, TABLES, COLUMNS), threading.Event()
    store: Counter[str] = Counter()
    found: list[tuple[Counter[str], Counter[str]]] = []

    def hear(report: Report) -> None:
        found.append((store.copy(), servers.logins.copy()))
        if len(found) > WARM + EPOCHS:
            stop.set()
        else:
            servers.change(len(found) + 1)

    def said(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if "catchment_record" in statement or "catchment_version" in statement:
            store[statement.split(" ", 1)[0]] += 1

    event.listen(Engine, "before_cursor_execute", said)
    try:
        with world.instead(Beside(servers)):
            run_feed(
                servers.feed(tmp_path),
                until_caught_up=False,
                stop=stop,
                observer=Observer(began=lambda standing: servers.change(1), committed=hear),
                ports=ports(),
            )
    finally:
        event.remove(Engine, "before_cursor_execute", said)
    (begun, logins), (ended, later) = found[WARM], found[WARM + EPOCHS]
    spent, login = ended - begun, later - logins
    # Another epoch may have begun that is not committed.
    assert 3 * (EPOCHS - 1) <= spent["INSERT"] <= 3 * (EPOCHS + 1), spent
    assert spent.total() <= STATEMENTS_OF_A_RECORD * (spent["INSERT"] + 1), spent
    assert max(login.values()) <= LOGINS * (EPOCHS + 1), login
