"""Every code of the large character sets: the log through us, SELECT through us, and the server's own word."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.wire.cells import charsets
from tests.layers.wire.answers import columns_of, run, select
from tests.layers.wire.charset_survey import all_of
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.world.servers.launch import PrivateMySQL

CODES_PER_ROW = 2000
POINTS = {"ucs2": 0x10000, "utf16": 0x110000, "utf16le": 0x110000, "utf32": 0x110000}

# MySQL takes the katakana lead with a byte that is no katakana, and gives two characters for the pair.
_TWO_FOR_ONE = {"eucjpms": {b"\x8e\xa0"}, "ujis": {b"\x8e\xa0"}}


def wide(charset: str, step: int = 1) -> Iterator[bytes]:
    """Every code point of Unicode, but for the halves of pairs, which no set has as characters."""
    codec = charsets.WIDE[charset]
    return (chr(p).encode(codec) for p in range(0, POINTS[charset], step) if not 0xD800 <= p < 0xE000)


def gb18030(step: int = 1) -> Iterator[bytes]:
    """Every code of GB 18030, also those without a character."""
    short = (code for code in charsets.codes("gb18030") if len(code) < 4)
    return chain(islice(short, 0, None, step), map(charsets.four_bytes, range(0, 1_587_600, step)))


def rows_of(codes: Iterable[bytes]) -> list[bytes]:
    left = iter(codes)
    return list(iter(lambda: b"".join(islice(left, CODES_PER_ROW)), b""))


def agree(server: PrivateServer, schema: str, charset: str, rows: list[bytes]) -> list[str]:
    """The texts of the rows, on which all three agree."""
    with closing(server.connect(conv={})) as session:
        start = end_of_log(server)
        run(session, f"CREATE TABLE {schema}.t (id int PRIMARY KEY, c longtext CHARACTER SET {charset})")
        for first in range(0, len(rows), 200):
            values = ", ".join(
                f"({i}, x'{row.hex()}')" for i, row in enumerate(rows[first : first + 200], first)
            )
            run(session, f"INSERT INTO {schema}.t VALUES {values}")
        columns = columns_of(session, schema, "t")
        found = select(session, f"SELECT id, c FROM {schema}.t ORDER BY id", columns)[0].take_batch()
        said = run(session, f"SELECT HEX(CONVERT(c USING utf8mb4)) FROM {schema}.t ORDER BY id")
    images = decoded(read_dump(server, start), start, wanted=[TableId(schema, "t")]).take_images()
    logged = pa.Table.from_batches([image.batch for image in images])["c"].to_pylist()
    texts = [bytes.fromhex(row[0]).decode() for row in said]
    assert found["c"].to_pylist() == texts
    assert logged == texts
    return texts


@pytest.mark.wide
@pytest.mark.parametrize("fixture", ["shard", "mysql_server"])
def test_every_point_of_unicode(
    fixture: str,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    subtests: pytest.Subtests,
) -> None:
    server = request.getfixturevalue(fixture)
    for charset, points in POINTS.items():
        with subtests.test(charset):
            texts = agree(server, fresh_schema(server), charset, rows_of(wide(charset)))
            assert len("".join(texts)) == points - 2048


@pytest.mark.wide
def test_every_code_of_gb18030(mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]) -> None:
    rows = rows_of(gb18030())
    texts = agree(mysql_server, fresh_schema(mysql_server), "gb18030", rows)
    assert len(set("".join(texts))) == 0x110000 - 2048  # all of Unicode, `?` for the others
    for row, text in zip(rows[:40] + rows[-300:], texts[:40] + texts[-300:], strict=True):
        assert charsets.decoded("gb18030", row) == text  # as labels and statements are


def test_some_codes_of_the_large_sets(
    shard: PrivateServer,
    mysql_server: PrivateMySQL,
    fresh_schema: Callable[..., str],
    subtests: pytest.Subtests,
) -> None:
    """One in 67 of all, from the first to the last."""
    for charset in POINTS:
        with subtests.test(charset):
            texts = agree(shard, fresh_schema(shard), charset, rows_of(wide(charset, 67)))
            assert len("".join(texts)) == len(list(wide(charset, 67)))
    with subtests.test("gb18030"):
        rows = rows_of(gb18030(67))
        texts = agree(mysql_server, fresh_schema(mysql_server), "gb18030", rows)
        assert [charsets.decoded("gb18030", row) for row in rows] == texts


@pytest.mark.long
def test_every_code_of_the_sets_of_mysql(mysql_server: PrivateMySQL) -> None:
    """The tables are those of MariaDB; MySQL has the same ones."""
    with closing(mysql_server.connect(conv={})) as session:
        for charset in sorted({*charsets.CODECS, *charsets.PAIRS} - {"gb18030"}):
            told, known = all_of(session, charset), charsets.characters(charset)
            assert {code: told.get(code) for code in known} == known, charset
            more = {code for code in set(told) - set(known) if len(code) > 1}
            assert more == _TWO_FOR_ONE.get(charset, set()), charset
