"""The log of a command: what each of its lines has, and who sees which."""

import json
import logging
import re
from collections.abc import Iterator

import click
import pytest

from catchment.cli.log import CommandLog
from catchment.model.errors import ConnectionLost, SinkError
from catchment.model.log_fields import about
from catchment.model.table import TableId

LOG = logging.getLogger("catchment.watch.troubles")
LINE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO   |WARNING|ERROR  ) [\w.]+: .+"
ORDERS, ITEMS = TableId("shop", "orders"), TableId("shop", "items")


@pytest.fixture
def log() -> Iterator[CommandLog]:
    with CommandLog() as log:
        yield log


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == "", "standard output is for what the command is called for"
    return err.splitlines()


def test_every_line_has_time_level_and_logger(log: CommandLog, capsys: pytest.CaptureFixture[str]) -> None:
    log.keep("info")
    LOG.info("the epoch was read")
    LOG.warning("shard %s is away", "-80")
    logging.getLogger("urllib3").warning("said by others")
    LOG.error("two\nlines")
    log.say("shard -80 refuses", error=ConnectionLost("shard -80 refuses"))
    lines = said(capsys)
    assert all(re.fullmatch(LINE, line) for line in lines), lines
    assert [line[25:] for line in lines] == [
        "INFO    watch.troubles: the epoch was read",
        "WARNING watch.troubles: shard -80 is away",
        "WARNING urllib3: said by others",
        "ERROR   watch.troubles: two",
        "ERROR   watch.troubles: lines",
        "ERROR   catchment: shard -80 refuses",
    ]


def test_json_has_what_is_known_of_the_message(log: CommandLog, capsys: pytest.CaptureFixture[str]) -> None:
    log.ask(log_format="json")
    log.keep("info")
    log.of_feed("shop")
    refused = ConnectionLost("refused\nby the host")
    LOG.warning("%s", refused, extra=about(shard="-80", error=refused))
    LOG.warning("one", extra=about(tables=[ORDERS]))
    LOG.warning("many", extra=about(tables=[ORDERS, ITEMS]))
    log.say("no room", error=SinkError("no room"))
    found = [json.loads(line) for line in said(capsys)]
    assert all(re.fullmatch(LINE[: LINE.index(" ")], one.pop("time")) for one in found)
    troubles = {"level": "warning", "logger": "watch.troubles", "feed": "shop"}
    assert found == [
        {**troubles, "message": str(refused), "shard": "-80", "error": "ConnectionLost", "scope": "shard"},
        {**troubles, "message": "one", "table": "shop.orders"},
        {**troubles, "message": "many", "tables": 2},
        {
            "level": "error",
            "logger": "catchment",
            "message": "no room",
            "feed": "shop",
            "error": "SinkError",
            "scope": "target",
        },
    ]


def test_a_traceback_is_a_field_of_its_line(log: CommandLog, capsys: pytest.CaptureFixture[str]) -> None:
    log.ask(log_format="json")
    log.keep("info")
    try:
        raise LookupError("no bar for this table")
    except LookupError as error:
        LOG.warning("telling failed", exc_info=error)
    (line,) = said(capsys)
    assert json.loads(line)["traceback"].endswith("LookupError: no bar for this table")


@pytest.mark.parametrize(
    ("level", "quiet", "usual", "seen"),
    [
        (None, False, "info", ["info", "warning", "error"]),
        (None, False, "warning", ["warning", "error"]),
        (None, True, "info", ["warning", "error"]),
        ("error", False, "info", ["error"]),
        ("debug", False, "warning", ["debug", "info", "warning", "error"]),
    ],
)
def test_levels(
    level: str | None,
    quiet: bool,
    usual: str,
    seen: list[str],
    log: CommandLog,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.ask(log_level=level, quiet=quiet)
    log.keep(usual)
    others = logging.getLogger("urllib3")
    for name in ("debug", "info", "warning", "error"):
        LOG.log(logging.getLevelNamesMapping()[name.upper()], "%s", name)
        others.log(logging.getLevelNamesMapping()[name.upper()], "of others: %s", name)
    lines = said(capsys)
    assert [line.rpartition(" ")[2] for line in lines if "troubles" in line] == seen
    loud = [name for name in seen if name in ("warning", "error")]
    assert [line.rpartition(" ")[2] for line in lines if "urllib3" in line] == loud


def test_a_level_and_quiet_contradict(log: CommandLog) -> None:
    log.ask(log_level="info", quiet=True)
    with pytest.raises(click.UsageError, match="--quiet is --log-level warning"):
        log.keep("info")


def test_a_command_without_a_log_says_why_it_ends_as_people_read_it(
    log: CommandLog, capsys: pytest.CaptureFixture[str]
) -> None:
    LOG.info("not seen")
    LOG.warning("seen")
    log.say("shard -80 refuses", error=ConnectionLost("shard -80 refuses"))
    first, last = said(capsys)
    assert re.fullmatch(LINE, first)
    assert last == "catchment: shard -80 refuses"


def test_levels_are_as_before_when_it_has_ended() -> None:
    before = [logging.getLogger(name).level for name in (None, "catchment")]
    handlers = [*logging.getLogger().handlers]
    with CommandLog() as log:
        log.ask(log_format="json", log_level="error")
        log.keep("info")
    assert [logging.getLogger(name).level for name in (None, "catchment")] == before
    assert logging.getLogger().handlers == handlers
