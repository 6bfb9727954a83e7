from collections.abc import Sequence

import pyarrow as pa

from catchment.model.table import Column

class ResultDecoder:
    """Decodes the answer to one COM_STMT_EXECUTE, in pieces of any size, into Arrow (cells/types.py: arrow_type).

    Does no input or output. After an error it takes no more bytes and never has `ended`. A connection that
    closes before `ended` broke off: the rows so far are not the result.
    """

    ended: bool
    """The server's own last packet has come."""
    rows: int
    """Rows decoded since the start, taken or not."""
    warning_count: int
    """Warnings of the statement, known when `ended`."""
    status: int
    """The server's status flags (SERVER_STATUS_*), known when `ended`."""
    def __init__(self, table_columns: Sequence[Column]) -> None:
        """`table_columns` are the expected columns in order; raises ValueError for none or more than 4096."""
    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Decode the next bytes of the connection; the memory may be reused afterwards.

        Raises ServerSaid for the server's error packet, also between rows. Raises SourceError when a column is not the
        expected one (count, name, type, signedness, character set). Raises Unsupported for text that is not UTF-8.
        Raises CorruptResult for bytes that are no answer, and for bytes after its end.
        """
    @property
    def pending_bytes(self) -> int:
        """Bytes that the rows not yet taken need in a batch, about; take a batch before 2 GiB."""
    def take_batch(self) -> pa.RecordBatch:
        """The rows decoded and not yet taken, without a copy; empty when there are none."""
