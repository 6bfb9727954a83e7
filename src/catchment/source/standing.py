"""A dump that stays open: it gives a shard's log as it is written, to one reader after another.

Each reader begins where the one before ended, and gets what a dump of its own would begin with: the name of the file,
the place in it, and the file's format. So it proves of its part what it would prove of a dump.

A dump stands in one file. Whatever else happens to it (the server begins another file, ends it, or falls silent) ends
it with ConnectionLost. A dump of its own then tells the next reader what it was.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from catchment import world
from catchment.model.errors import ConnectionLost
from catchment.model.position import DUMP_OFFSET_MAX, LogOffset, Server
from catchment.model.source import Endpoint
from catchment.source.dump import opened
from catchment.source.session import Session, mapped
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.packets.statements import standing_dump_packet

_READ_BYTES: Final = 1 << 20
# A packet that is larger is read by a dump of its own, which holds no packet whole that is not wanted.
_PACKET_MAX: Final = 4 << 20
# A server says that its log rests so often, and so it notices soon that its reader is gone.
_HEARTBEAT_SECONDS: Final = 1
# A dump of which nothing comes for so long, though there is log to come, is dead: a firewall may drop it unheard.
_SILENT_SECONDS: Final = 5.0
_FILE_START: Final = 4
# Ids of replicas are small, or made of the addresses of their hosts: no host has one from 224.0.0.0 on.
_SERVER_ID_LEAST: Final = 0xE0000000
_SERVER_IDS: Final = 1 << 29
_HEAD_BYTES: Final = 4
_EVENT_HEAD: Final = 19
_CHECKSUM: Final = 4
# Of a packet: whether it is an event, and where the type of that stands behind the packet's own head.
_EVENT: Final = 0
_TYPE_AT: Final = _HEAD_BYTES + 1 + 4
_ROTATE, _FORMAT, _HEARTBEATS = 4, 15, (27, 41)


def can_stand(start: LogOffset) -> bool:
    """Whether a dump can stand that begins there. At the start of a file its format is no copy that can be repeated."""
    return _FILE_START < start.offset <= DUMP_OFFSET_MAX


class StandingDump:
    """One thread at a time may use it. `at`: where the next reader has to begin; None where there can be none. `begun`:
    whether a part was read."""

    def __init__(self, endpoint: Endpoint, server: Server, start: LogOffset) -> None:
        """Log in and begin. Raises as `connect`, ConnectionLost where the server sends no log from there."""
        self.at: LogOffset | None = start
        self.begun = False
        self._shard = endpoint.shard
        self._session = opened(endpoint, server)
        self._held = bytearray()
        self._buffer = memoryview(bytearray(_READ_BYTES))
        try:
            self._session.run(
                f"SET @master_heartbeat_period = {_HEARTBEAT_SECONDS * 1_000_000_000},"
                f" @source_heartbeat_period = {_HEARTBEAT_SECONDS * 1_000_000_000}"
            )
            with mapped(endpoint):
                self._session.sock.sendall(standing_dump_packet(start, _server_id()))
            self._rotation, self._format = self._head(_ROTATE), self._head(_FORMAT)
        except BaseException:
            self.close()
            raise

    @property
    def session(self) -> Session:
        """The session of the dump."""
        return self._session

    def holds_log(self) -> bool:
        """Whether an event was received that is no heartbeat, and nobody has read it. Raises ConnectionLost."""
        try:
            while (size := self._packet()) and self._is_heartbeat(0):
                del self._held[:size]
        except ConnectionLost:
            self.at = None
            raise
        return size > 0

    def receive(self) -> None:
        """Take what the socket has; waits for it. Raises ConnectionLost."""
        try:
            with mapped(self._session.endpoint):
                size = self._session.sock.recv_into(self._buffer)
            if size == 0:
                raise ConnectionLost(f"shard {self._shard}: the server closed a dump that stood")
        except ConnectionLost:
            self.at = None
            raise
        self._held += self._buffer[:size]

    @contextmanager
    def into(self, decoder: LogDecoder, *, to_stop: bool) -> Iterator["Part"]:
        """A part of the log, from `at` on, for a decoder that begins there. `to_stop`: up to its stop.

        Unless the part is pulled to its end, no other follows.
        """
        begins, self.at = self.at, None
        if begins != decoder.begins:
            raise ConnectionLost(f"shard {self._shard}: no dump stands at {decoder.begins}")
        decoder.folds = self._session.folds
        yield Part(self, decoder, to_stop=to_stop)

    def begin(self, decoder: LogDecoder) -> int:
        """Give a decoder what a dump from where it begins would begin with; how many bytes that is."""
        self._wait_for_event()
        number = self._held[3]
        head = _packet(number - 2, _at(self._rotation, decoder.begins)) + _packet(number - 1, self._format)
        decoder.feed(head)
        return len(head)

    def feed(self, decoder: LogDecoder, *, one: bool) -> int:
        """Give a decoder the events that have come, or `one` of them; waits for the first. How many bytes they had.

        Raises ConnectionLost where no event comes, or the file ends; what the decoder raises.
        """
        self._wait_for_event()
        end = 0
        while (size := self._packet(end)) and self._is_of_file(end):
            last = one and not self._is_heartbeat(end)
            end += size
            if last:
                break
        if not end:
            raise ConnectionLost(f"shard {self._shard}: the dump that stood at {decoder.at} is over")
        events = bytes(memoryview(self._held)[:end])
        del self._held[:end]
        decoder.feed(events)
        return end

    def close(self) -> None:
        """End it."""
        self.at = None
        self._session.abandon()

    def _head(self, kind: int) -> bytes:
        """The payload of the next packet, which is an event of this kind."""
        self._wait_for_event()
        size = self._packet()
        payload = bytes(self._held[_HEAD_BYTES:size])
        if not self._is_event(0) or self._held[_TYPE_AT] != kind:
            raise ConnectionLost(f"shard {self._shard}: the server sends no log from {self.at}")
        del self._held[:size]
        return payload

    def _packet(self, at: int = 0) -> int:
        """How many bytes the packet has that begins there; 0 where it has not come whole."""
        size = _HEAD_BYTES + int.from_bytes(self._held[at : at + 3], "little")
        if size > _PACKET_MAX:
            raise ConnectionLost(f"shard {self._shard}: an event of more than {_PACKET_MAX} bytes comes")
        return size if len(self._held) - at >= max(size, _HEAD_BYTES + 1) else 0

    def _is_event(self, at: int) -> bool:
        return self._held[at + _HEAD_BYTES] == _EVENT and len(self._held) - at > _TYPE_AT

    def _is_of_file(self, at: int) -> bool:
        return self._is_event(at) and self._held[at + _TYPE_AT] != _ROTATE

    def _is_heartbeat(self, at: int) -> bool:
        return self._is_event(at) and self._held[at + _TYPE_AT] in _HEARTBEATS

    def _wait_for_event(self) -> None:
        """Until a packet has come that is no heartbeat."""
        ends = world.steady_seconds() + _SILENT_SECONDS
        at = 0
        while True:
            while size := self._packet(at):
                if not self._is_heartbeat(at):
                    return
                at += size
            if not self._session.readable(max(0.0, ends - world.steady_seconds())):
                raise ConnectionLost(
                    f"shard {self._shard}: nothing came of its log for {_SILENT_SECONDS:.0f} s, though it went on"
                )
            self.receive()


class Part:
    """What one reader takes of a dump."""

    def __init__(self, dump: StandingDump, decoder: LogDecoder, *, to_stop: bool) -> None:
        self._dump = dump
        self._decoder = decoder
        self._to_stop = to_stop
        self._begun = self._came = False

    def pull(self) -> int:
        """Decode some more of it: how many bytes, 0 at the end. Raises as StandingDump.feed."""
        decoder = self._decoder
        if not self._begun:
            self._begun = True
            return self._dump.begin(decoder)
        if decoder.reached_stop or (self._came and not self._to_stop and not decoder.in_group):
            self._dump.at, self._dump.begun = decoder.at, True
            return 0
        # Behind what came at once a part ends with the group, and at the stop: the rest is the next reader's.
        one = self._came or self._to_stop
        self._came = True
        return self._dump.feed(decoder, one=one)


def _server_id() -> int:
    """One that no replica and no other dump has, in all likelihood. If one has, the server ends the older dump."""
    return _SERVER_ID_LEAST + int(world.token().replace("-", "")[:8], 16) % _SERVER_IDS


def _packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload) | (number & 0xFF) << 24) + payload


def _at(rotation: bytes, start: LogOffset) -> bytes:
    """The event that names the file of a dump, for one that begins elsewhere in that file."""
    event = rotation[1 : 1 + _EVENT_HEAD] + struct.pack("<Q", start.offset) + start.file.encode()
    if len(rotation) == 1 + len(event) + _CHECKSUM:
        event += struct.pack("<I", zlib.crc32(event))
    return rotation[:1] + event


def come(dumps: Sequence[StandingDump], seconds: float) -> bool:
    """Whether log of one of them has come that nobody has read, or comes in so many seconds. Raises ConnectionLost."""
    ends = world.steady_seconds() + seconds
    by_session = {dump.session: dump for dump in dumps}
    first, *others = by_session
    while not any(dump.holds_log() for dump in dumps):
        came = first.readable(max(0.0, ends - world.steady_seconds()), others)
        if not came:
            return False
        for session in came:
            by_session[session].receive()
    return True
