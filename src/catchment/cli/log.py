"""The log of a command: lines on standard error, each with its time, its level and the part of Catchment that wrote it.

Standard output is for what a command is called for. Every command has a log of its warnings and errors. Those that run
for long keep one of all they do, and its lines are text or JSON, as the command line asks.
"""

import logging
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import click
import msgspec

from catchment.model.log_fields import FIELDS, about

_NAME = "catchment"
_LEVELS = ("debug", "info", "warning", "error")
_C = TypeVar("_C", bound=Callable[..., Any])


@dataclass(frozen=True)
class _Asked:
    """What the command line says of the log."""

    log_format: str | None = None
    log_level: str | None = None
    quiet: bool = False


def log_options(command: _C) -> _C:
    """Options of a command that keeps a log; `CommandLog.keep` obeys them."""
    for option in (
        _option(
            "-q", "--quiet", is_flag=True, help="Log warnings and errors alone, as --log-level warning does."
        ),
        _option("--log-level", type=click.Choice(_LEVELS), help="Log nothing less than this."),
        _option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            help="How the log is written, on standard error: lines for people, or a JSON object in each line.",
        ),
    ):
        command = option(command)
    return command


def _option(*names: str, **kind: Any) -> Callable[[_C], _C]:
    def ask(ctx: click.Context, option: click.Parameter, value: object) -> None:
        ctx.ensure_object(CommandLog).ask(**{str(option.name): value})

    return click.option(*names, **kind, expose_value=False, callback=ask)


def current_log() -> "CommandLog":
    """The log of the command that runs in this thread."""
    return click.get_current_context().ensure_object(CommandLog)


class CommandLog:
    """The log of one command, in force while it is used as a context manager."""

    def __init__(self) -> None:
        self._handler = _ToStandardError()
        self._handler.setFormatter(_TextLines())
        self._keeps = False
        self._asked = _Asked()
        self._before = (logging.NOTSET, logging.NOTSET)

    def __enter__(self) -> Self:
        root, ours = logging.getLogger(), logging.getLogger(_NAME)
        self._before = root.level, ours.level
        root.addHandler(self._handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        root, ours = logging.getLogger(), logging.getLogger(_NAME)
        root.removeHandler(self._handler)
        root.setLevel(self._before[0])
        ours.setLevel(self._before[1])

    def ask(self, **of_command_line: Any) -> None:
        """Take in an option: `log_format`, `log_level` or `quiet`."""
        self._asked = replace(self._asked, **of_command_line)

    @property
    def is_asked_for(self) -> bool:
        """Whether the command line wants lines, also at a terminal."""
        return self._asked.log_format is not None or self._asked.quiet

    def keep(self, usual: str, *, lines: bool = True) -> None:
        """Write it as the command line asks; `usual` is the level where that names none. With `lines`, or with a
        format, what ends the command is a line of the log, too. Raises UsageError where the options contradict."""
        form, level, quiet = self._asked.log_format, self._asked.log_level, self._asked.quiet
        if quiet and level is not None:
            raise click.UsageError("--quiet is --log-level warning: give one of the two")
        chosen = logging.getLevelNamesMapping()[(level or ("warning" if quiet else usual)).upper()]
        logging.getLogger(_NAME).setLevel(chosen)
        logging.getLogger().setLevel(
            max(chosen, logging.WARNING)
        )  # other packages explain themselves at length
        self._keeps = lines or form is not None
        if form == "json":
            self._handler.setFormatter(_JsonLines())

    def of_feed(self, feed: str) -> None:
        """From now on lines of JSON name the feed."""
        if isinstance(self._handler.formatter, _JsonLines):
            self._handler.setFormatter(_JsonLines(feed))

    def say(self, message: str, *, error: Exception | None = None) -> None:
        """Why the command ends: a line of its log if it keeps one, else as people read it."""
        if not self._keeps:
            click.echo(f"{_NAME}: {message}", err=True)
            return
        level = logging.INFO if error is None else logging.ERROR
        logging.getLogger(_NAME).log(level, "%s", message, extra=about(error=error))

    def report(self, fault: Exception) -> None:
        """A fault of this program ends the command: where it happened, for whoever mends it."""
        if self._keeps:
            said = "a fault of this program; please report this line and its traceback"
            logging.getLogger(_NAME).error("%s", said, exc_info=fault, extra=about(error=fault))
            return
        traceback.print_exception(fault)
        self.say("a fault of this program; please report the lines above")


class _ToStandardError(logging.Handler):
    """Writes to what standard error is now: a display on a terminal takes its place for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        with suppress(OSError, ValueError):  # nobody reads it any more
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


class _TextLines(logging.Formatter):
    """`2026-11-28T16:20:01.123Z WARNING watch.troubles: shard -80 is away ...`. A traceback comes in lines below."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        head = f"{_time(record)} {record.levelname:<7} {_part(record)}: "
        return "\n".join(f"{head}{line}" for line in record.message.splitlines() or [""])


class _JsonLines(logging.Formatter):
    """One object in each line, with what `model.log_fields` knows of its message."""

    def __init__(self, feed: str = "") -> None:
        super().__init__()
        self._feed = {"feed": feed} if feed else {}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": _part(record),
            "message": record.getMessage(),
            **self._feed,
            **{name: vars(record)[name] for name in FIELDS if name in vars(record)},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def _time(record: logging.LogRecord) -> str:
    text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _part(record: logging.LogRecord) -> str:
    """What part of Catchment wrote it, as `feed.loop`; of another package its own name."""
    return record.name.removeprefix(f"{_NAME}.")
