"""How a session reads what a server calls text: as UTF-8, with U+FFFD for bytes that are none.

A server shows bytes as they were written where they stand in a text that it does not convert. MariaDB 10.11 shows
`BINARY(2) DEFAULT x'e9ff'` so in SHOW CREATE TABLE, and all servers `_binary'..'` in the body of a trigger or a view.
PyMySQL decodes strictly and in the middle of an answer: one such byte ended a run, and left the session out of step.
"""

import codecs
from typing import Any, Final

NAME: Final = "catchment_lenient"
_UTF8: Final = codecs.lookup("utf-8")


def _decode(data: Any, _errors: str = "strict", /) -> tuple[str, int]:
    return codecs.utf_8_decode(data, "replace", True)


def _found(name: str) -> codecs.CodecInfo | None:
    return codecs.CodecInfo(_UTF8.encode, _decode, name=NAME) if name == NAME else None


codecs.register(_found)
