"""What a server makes of every code of a character set, and the table of where Python's codecs differ.

`python -m tests.layers.wire.charset_survey` starts a server, asks it, and writes charset_differences.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from catchment.demo.server import PrivateServer
from catchment.wire.cells import charset_differences, charsets
from tests.layers.wire.answers import Session, run
from tests.world.servers.builds import mysql_80
from tests.world.servers.launch import PrivateMySQL

_AT_ONCE = 1000
_HEAD = '''"""Where a server's character sets differ from Python's codecs (charsets.py). Written by
`python -m tests.layers.wire.charset_survey`, from MariaDB 10.11.19, gb18030 from MySQL 8.0.15.

`code=point`, both in hexadecimal, or `code*count=point` for consecutive codes with consecutive characters; `?`
for codes without a character.
"""

from typing import Final

DIFFERENCES: Final[dict[str, str]] = {
'''


def said(session: Session, charset: str, codes: Sequence[bytes]) -> dict[bytes, str]:
    """What the server makes of codes, without those that it refuses: putting them into the set changes them."""
    found: dict[bytes, str] = {}
    for first in range(0, len(codes), _AT_ONCE):
        some = codes[first : first + _AT_ONCE]
        texts = [f"CONVERT(x'{code.hex()}' USING {charset})" for code in some]
        asked = [
            f"IF(HEX({t}) = '{c.hex()}', HEX(CONVERT({t} USING utf8mb4)), '')"
            for t, c in zip(texts, some, strict=True)
        ]
        answers = run(session, f"SELECT {', '.join(asked)}")[0]
        found |= {
            c: bytes.fromhex(a).decode("utf-8", "surrogatepass")
            for c, a in zip(some, answers, strict=True)
            if a
        }
    return found


def all_of(session: Session, charset: str) -> dict[bytes, str]:
    """What the server makes of every sequence of bytes that can be a code: one, two or three bytes long."""
    found = said(session, charset, [bytes((a,)) for a in range(256)])
    leads = [a for a in range(256) if bytes((a,)) not in found]
    found |= said(session, charset, [bytes((a, b)) for a in leads for b in range(256)])
    if 0x8F in leads and not any(bytes((0x8F, b)) in found for b in range(256)):
        found |= said(
            session, charset, [bytes((0x8F, b, c)) for b in range(128, 256) for c in range(128, 256)]
        )
    if charset == "gb18030":
        found |= said(session, charset, [charsets.four_bytes(place) for place in range(charsets.FOURS)])
    return found


def differences(charset: str, told: dict[bytes, str]) -> str:
    """The entry of charset_differences.py."""
    parts: list[tuple[bytes, int, str]] = []
    for code in charsets.codes(charset):
        expected = charsets.python_character(charset, code)
        if told[code] == expected:
            parts.append((b"", 0, ""))
        elif parts and parts[-1][1] and told[code] == _next(parts[-1]):
            parts[-1] = (parts[-1][0], parts[-1][1] + 1, parts[-1][2])
        else:
            parts.append((code, 1, told[code]))
    return " ".join(_entry(*part) for part in parts if part[1])


def _next(part: tuple[bytes, int, str]) -> str:
    return "?" if part[2] == "?" else chr(ord(part[2]) + part[1])


def _entry(code: bytes, count: int, first: str) -> str:
    start = code.hex() if count == 1 else f"{code.hex()}*{count}"
    return f"{start}={'?' if first == '?' else format(ord(first), 'x')}"


def _lines(text: str) -> Iterator[str]:
    line = ""
    for part in text.split():
        if len(line) + len(part) > 95:
            yield line
            line = ""
        line += f"{part} "
    yield line.rstrip()


def main() -> None:
    """Write the table anew."""
    entries = []
    with (
        PrivateServer(server_id=1) as server,
        PrivateMySQL(mysql_80(), server_id=2) as mysql,
        closing(server.connect(conv={})) as session,
        closing(mysql.connect(conv={})) as other,
    ):
        for charset in sorted([*charsets.CODECS, *charsets.PAIRS]):
            text = differences(charset, all_of(other if charset == "gb18030" else session, charset))
            if text:
                body = "\n".join(f'        "{line}"' for line in _lines(text))
                entries.append(f'    "{charset}": (\n{body}\n    ),\n')
    Path(charset_differences.__file__).write_text(_HEAD + "".join(entries) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
