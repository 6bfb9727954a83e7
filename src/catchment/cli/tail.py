"""`catchment tail`: a source's rows and their changes on standard output, for people and for pipes."""

import sys
from pathlib import Path

import click
import msgspec

from catchment import world
from catchment.cli.log import current_log, log_options
from catchment.cli.output import EXIT_INTERRUPTED, feed_argument
from catchment.cli.pipe import Pipe
from catchment.cli.tail_avro import tell_as_avro
from catchment.cli.vgtid_file import VGtidFile, kept_vgtid
from catchment.config import load
from catchment.model.errors import ConfigError
from catchment.serve.formats.debezium import DebeziumLines
from catchment.serve.formats.json_lines import JsonLines
from catchment.serve.formats.table_lines import TableLines
from catchment.serve.stream.events import Heartbeat, VGtid
from catchment.serve.stream.flags import AddedShards, Flags
from catchment.serve.stream.stream import Stream, stream
from catchment.serve.stream.vgtid import COPY, CURRENT, StreamCut

_FORMATS = ("table", "json", "debezium", "avro")
# A reader that is gone is noticed within this time, though no row comes.
_LOOK_SECONDS = 1.0


_Lines = TableLines | JsonLines | DebeziumLines


@click.command(name="tail")
@feed_argument
@click.option(
    "--from",
    "begin",
    metavar="VGTID|current|copy|@PATH",
    default=CURRENT,
    show_default=True,
    help="Behind a vgtid, or the one in a file; at what comes from now on; or with the rows that exist.",
)
@click.option(
    "--table",
    "rules",
    metavar="RULE",
    multiple=True,
    help="Which tables, as under `tables` of a feed file, whose own are the default; may be given several times.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="table", show_default=True)
@click.option(
    "--tombstones", is_flag=True, help="With debezium: a message without a value behind each delete."
)
@click.option("--until-copied", is_flag=True, help="End once all rows that exist are told.")
@click.option(
    "--vgtid-file",
    type=click.Path(path_type=Path),
    help="Keep the last vgtid here, behind which --from @PATH goes on.",
)
@click.option(
    "--added-shards",
    "added",
    type=click.Choice([one.value for one in AddedShards]),
    default=AddedShards.REFUSE.value,
    show_default=True,
    help="What becomes of shards that the source has got since the vgtid.",
)
@log_options
def tail_command(
    file: Path,
    begin: str,
    rules: tuple[str, ...],
    form: str,
    tombstones: bool,
    until_copied: bool,
    vgtid_file: Path | None,
    added: str,
) -> int:
    """Print rows and their changes as they come, of all shards, until Ctrl-C.

    Reads the shards alone, by the feed file's `source`: no lake, no state store, and no run of the feed is needed.
    """
    log = current_log()
    log.keep("warning", lines=False)
    if tombstones and form != "debezium":
        raise ConfigError("--tombstones: only --format debezium has such messages")
    if until_copied and begin == CURRENT:
        raise ConfigError("--until-copied: from current nothing is copied; give --from copy or --from @PATH")
    if form == "avro" and sys.stdout.isatty():
        raise ConfigError(
            "--format avro: it is no text for a terminal; let a file or another command take it"
        )
    feed = load(file, secrets=("password",))
    kept = VGtidFile(vgtid_file) if vgtid_file else None
    flags = Flags(heartbeat_interval=_LOOK_SECONDS, added_shards=AddedShards(added))
    vgtid, tables = _vgtid(begin), rules or feed.tables
    try:
        with Pipe() as pipe, stream(feed, vgtid=vgtid, rules=tables, flags=flags) as events:
            if form == "avro":
                tell_as_avro(events, pipe, kept, until_copied=until_copied)
            else:
                _tell(events, _lines_of(form, tombstones=tombstones), pipe, kept, until_copied=until_copied)
    except KeyboardInterrupt:
        on = f"; --from @{vgtid_file} goes on from there" if vgtid_file else ""
        log.say(f"stopped{on}")
        return EXIT_INTERRUPTED
    return 0


def _tell(stream: Stream, lines: _Lines, pipe: Pipe, kept: VGtidFile | None, *, until_copied: bool) -> None:
    for event in stream:
        for line in lines.lines(event):
            pipe.write(f"{line}\n".encode())
        if isinstance(event, Heartbeat):
            pipe.flush()
        elif isinstance(event, VGtid):
            pipe.flush()
            if kept is not None:
                kept.put(event.text)
            if until_copied and msgspec.json.decode(event.text, type=StreamCut).cut.copied:
                return


def _lines_of(form: str, *, tombstones: bool) -> _Lines:
    if form == "json":
        return JsonLines()
    if form == "debezium":
        return DebeziumLines(lambda: world.now_us() // 1000, tombstones=tombstones)
    return TableLines()


def _vgtid(begin: str) -> str:
    if begin == "copy":
        return COPY
    return kept_vgtid(Path(begin[1:])) if begin.startswith("@") else begin
