"""One session that logs less than whole rows: its tables are copied again, and no other waits for that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.exact.manifests import must_be_equal, must_go_on, newest
from tests.promises.exact.steps import caught_up

LACKS = "SET SESSION binlog_row_image = MINIMAL"
TEXT = "SET SESSION binlog_format = STATEMENT"


@pytest.mark.promise(
    "a session that does not log whole rows makes the tables stale that it writes to, until they are copied again"
)
@pytest.mark.parametrize(
    ("setting", "why", "written"),
    [
        (LACKS, "a row event lacks columns; set binlog_row_image", {"odd"}),
        (TEXT, "set binlog_format=ROW for every", {"odd", "same"}),
    ],
    ids=["minimal", "statement"],
)
def test_its_tables_are_copied_again(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    setting: str,
    why: str,
    written: set[str],
) -> None:
    made = (
        "CREATE TABLE odd (id INT PRIMARY KEY, v INT, w INT)", "INSERT INTO odd VALUES (1, 1, 1), (2, 2, 2)",
        "CREATE TABLE same (id INT PRIMARY KEY, v INT)", "INSERT INTO same VALUES (1, 1)",
        "CREATE TABLE plain (id INT PRIMARY KEY, v INT)", "INSERT INTO plain VALUES (1, 1)",
    )  # fmt: skip
    steps = caught_up(monkeypatch, tmp_path, {"a": shards[0]}, fresh_schema(*shards[:1]), *made)
    exact = newest(steps).epoch
    steps.sql("a", setting, "UPDATE odd SET v = 7 WHERE id = 2", "UPDATE same SET v = v + 0")
    steps.sql("a", *("UPDATE plain SET v = v + 1" for _ in range(3)))
    steps.must_stop(caplog, "odd", why)
    must_go_on(steps, exact, written, {"plain": ("id", "v")})
    steps.renew("UPDATE plain SET v = v + 1")
    must_be_equal(steps, {"odd": ("id", "v", "w"), "same": ("id", "v"), "plain": ("id", "v")})
