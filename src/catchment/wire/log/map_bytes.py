"""The bytes of a table map event."""

from catchment.model.errors import CorruptLog


class TableMapBytes:
    """Reads the event from the front; raises CorruptLog when it ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, n: int) -> bytes:
        """The next bytes."""
        if n > len(self._data) - self._at:
            raise CorruptLog("the table map event ends too early")
        self._at += n
        return self._data[self._at - n : self._at]

    def number(self) -> int:
        """A length-encoded integer."""
        first = self.take(1)[0]
        if first < 0xFB:
            return first
        width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
        if width is None:
            raise CorruptLog("the table map event holds a malformed number")
        return int.from_bytes(self.take(width), "little")

    def rest(self) -> bool:
        """Whether there are more."""
        return self._at < len(self._data)
