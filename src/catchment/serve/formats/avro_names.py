"""Names of MySQL as names of Avro, which has letters and digits of ASCII and the underscore, and no digit in front.

Any other character is `_xHHHH_` with its code in UTF-16, as SQL/XML writes it (ISO 9075-14). An underscore that would
begin such a text is written so, too. So no two names become one, and each can be had back.
"""

import re
from typing import Final

_SHOWN_BY_CODE: Final = re.compile(r"[^A-Za-z0-9_]|^[0-9]|_(?=x[0-9A-F]{4}[^A-Za-z0-9])")
_CODES: Final = re.compile(r"(?:_x[0-9A-F]{4}_)+")
_CODE_CHARACTERS: Final = len("_xHHHH_")


def avro_name(name: str) -> str:
    """One part of a name, without dots."""
    return _SHOWN_BY_CODE.sub(lambda met: _code(met[0]), name)


def name_of(avro: str) -> str:
    """The name that `avro_name` was given."""
    return _CODES.sub(lambda met: _characters(met[0]), avro)


def _code(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"_x{units[at : at + 2].hex().upper()}_" for at in range(0, len(units), 2))


def _characters(codes: str) -> str:
    """All codes in a row at once: two of them may be one character."""
    units = [codes[at + 2 : at + 6] for at in range(0, len(codes), _CODE_CHARACTERS)]
    return bytes.fromhex("".join(units)).decode("utf-16-be")
