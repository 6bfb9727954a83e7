"""The head of a dump: where the first group that the server sends begins.

Sources: MySQL manual, "Binary Log Event Header", and mysql/binlog/event/binlog_event.h; MariaDB manual, GTID_EVENT.
Reads the few packets in front of that group; the log itself is read by decoder.py.
"""

from typing import Final

from catchment.model.errors import CorruptLog, CorruptResult
from catchment.model.position import LogOffset
from catchment.wire.packets.replies import END, EOF_SIZE, ERROR, Fields, server_error

_ROTATE: Final = 4
_GTIDS: Final = (33, 34, 42, 162)  # GTID, anonymous GTID, tagged GTID; of MariaDB
_CHECKSUM_BYTES: Final = 4


class FirstGroup:
    """Fed the bytes of a dump from its beginning on; `at` is where the first group begins, `ended` that there is
    none. `checksums`: whether events end with one.
    """

    def __init__(self, *, checksums: bool) -> None:
        self._tail = _CHECKSUM_BYTES if checksums else 0
        self._data = b""
        self._file = ""
        self.at: LogOffset | None = None
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Take more bytes. Raises ServerSaid with the server's refusal, CorruptLog."""
        fields = Fields(self._data + data)
        try:
            while self.at is None and not self.ended and (packet := fields.packet()) is not None:
                self._on_packet(packet)
        except CorruptResult as error:
            raise CorruptLog(f"the head of a dump of {self._file or 'the log'}: {error}") from None
        self._data = fields.take(fields.left)

    def _on_packet(self, packet: Fields) -> None:
        if packet.peek() == ERROR:
            raise server_error(packet)
        if packet.peek() == END and packet.left <= EOF_SIZE:
            self.ended = True
            return
        packet.skip(1 + 4)
        kind = packet.integer(1)
        packet.skip(4)
        size, following = packet.integer(4), packet.integer(4)
        packet.skip(2)
        if kind == _ROTATE:
            packet.skip(8)
            self._file = packet.take(packet.left - self._tail).decode(errors="replace")
        elif kind in _GTIDS:
            if following < size:
                raise CorruptResult(f"a group of {size} bytes ends at {following}")
            self.at = LogOffset(self._file, following - size)
