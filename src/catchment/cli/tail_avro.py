"""`catchment tail --format avro`: one file of Avro's, which ends where rows come that it cannot hold."""

from catchment import world
from catchment.cli.pipe import Pipe
from catchment.cli.vgtid_file import VGtidFile
from catchment.model.errors import FileComplete
from catchment.model.extras import needing
from catchment.serve.stream.events import Heartbeat
from catchment.serve.stream.stream import Stream
from catchment.serve.stream.vgtid import written


def tell_as_avro(stream: Stream, pipe: Pipe, kept: VGtidFile | None, *, until_copied: bool) -> None:
    """Raises FileComplete where the next file is to begin: behind the last vgtid, of which all is written."""
    with needing("--format avro", "local"):
        from catchment.serve.formats.avro import AvroFile
    file = AvroFile(stream.tables, lambda: world.now_us() // 1000)
    try:
        for turn in stream.turns():
            if isinstance(turn, Heartbeat):
                pipe.flush()
                continue
            if lacking := file.lacking(turn):
                raise FileComplete(
                    f"{', '.join(map(str, lacking))}: rows come with columns for which this Avro file has no place. It "
                    "is whole; begin another one behind its last vgtid, with --from @PATH where --vgtid-file keeps that"
                )
            for part in file.blocks(turn):
                pipe.write(part)
            pipe.flush()
            if kept is not None:
                kept.put(written(turn.stands))
            if until_copied and turn.stands.cut.copied:
                break
    finally:
        for part in file.end():
            pipe.write(part)
