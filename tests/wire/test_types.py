"""The tables of type facts and character sets, against what a server says."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Unsupported
from catchment.model.table import ColumnType, Kind, TableId
from catchment.wire import charsets
from catchment.wire.types import arrow_type, from_catalog
from tests.wire.answers import Session, columns_of, run
from tests.wire.dumps import decoded, end_of_log, read_dump
from tests.wire.odd_values import ODD

REFUSED = ["point", "geometry", "varchar(9) compressed", "blob compressed"]
REFUSED += ["varchar(9) character set sjis", "enum('a') character set ucs2", "text character set swe7"]


def test_every_collation_number(session: Session) -> None:
    said = run(
        session,
        "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY",
    )
    assert len(said) > 500
    wrong = [(number, name) for number, name in said if charsets.of_collation(int(number)) != name]
    assert wrong == []


def test_a_collation_number_not_known() -> None:
    assert charsets.of_collation(600) == "collation 600"
    assert not charsets.carried(charsets.of_collation(600))


@pytest.mark.parametrize("charset", sorted(charsets.CODECS))
def test_every_byte_of_a_character_set(session: Session, charset: str) -> None:
    asked = ", ".join(f"HEX(CONVERT(_{charset} x'{byte:02x}' USING utf8mb4))" for byte in range(256))
    said = [bytes.fromhex(text) for text in run(session, f"SELECT {asked}")[0]]
    assert charsets.table(charset) == tuple(said)


def test_utf8_needs_no_table() -> None:
    assert charsets.table("utf8mb4") is None
    with pytest.raises(KeyError):
        charsets.table("sjis")


def test_catalog_and_table_map_agree(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    odd = [
        *ODD,
        "enum('b\\\\c','d''e','f\\ng','x,y',' lead') character set latin1",
        "enum('é','€') character set cp1250",
        "set('а','б') character set koi8r",
        "char(255) character set utf8mb4 collate utf8mb4_uca1400_as_cs",
        "char(70) character set latin2",
        "varchar(9) character set tis620 collate tis620_nopad_bin",
        "binary(255)",
        "float(7,3) unsigned",
        "real",
        "bool",
        "tinyint zerofill",
        "time(1)",
        "datetime(4)",
    ]
    columns = ", ".join(f"`c{i} ``x` {kind}" for i, kind in enumerate(odd))
    start = end_of_log(shard)
    run(
        session,
        f"CREATE TABLE {schema}.t ({columns}, PRIMARY KEY (`c8 ``x`, `c0 ``x`))",
        f"CREATE TABLE {schema}.p (v varchar(99), b blob, PRIMARY KEY (b(5), v))",
        f"INSERT INTO {schema}.t (`c0 ``x`, `c8 ``x`) VALUES (1, 2)",
        f"INSERT INTO {schema}.p VALUES ('a', 'b')",
    )
    wanted = {TableId(schema, "t"), TableId(schema, "p")}
    images = decoded(read_dump(shard, start), start, wanted=wanted).take_images()
    assert [image.table.id.name for image in images] == ["t", "p"]
    for image in images:
        assert image.table.columns == columns_of(session, schema, image.table.id.name)
    assert images[0].table.key == ("c8 `x", "c0 `x")
    assert images[1].table.key == ("b", "v")


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_types(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], kind: str
) -> None:
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    run(session, f"CREATE TABLE {schema}.t (id int, odd {kind})", f"INSERT INTO {schema}.t VALUES (1, NULL)")
    with pytest.raises(Unsupported):
        columns_of(session, schema, "t")
    raw = read_dump(shard, start)
    decoded(raw, start, wanted=[TableId(schema, "another")])
    with pytest.raises(Unsupported, match=rf"{schema}\.t\.odd: "):
        decoded(raw, start, wanted=[TableId(schema, "t")])


@pytest.mark.parametrize("kind", ["inet4", "inet6", "uuid"])
def test_types_that_the_log_shows_as_binary(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], kind: str
) -> None:
    """Only the catalog can refuse these: the log declares them as BINARY of 4 or 16 bytes."""
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    run(session, f"CREATE TABLE {schema}.t (odd {kind})", f"INSERT INTO {schema}.t VALUES (NULL)")
    with pytest.raises(Unsupported, match=kind):
        columns_of(session, schema, "t")
    images = decoded(read_dump(shard, start), start, wanted=[TableId(schema, "t")]).take_images()
    assert images[0].table.columns[0].type == ColumnType(Kind.BINARY, length=4 if kind == "inet4" else 16)


def test_arrow_types_of_the_rule() -> None:
    def of(data_type: str, column_type: str, charset: str | None = None) -> pa.DataType:
        return arrow_type(from_catalog(data_type, column_type, charset))

    assert of("mediumint", "mediumint(8) unsigned") == pa.int32()
    assert of("bigint", "bigint(20) unsigned") == pa.decimal128(20, 0)
    assert of("decimal", "decimal(38,38)") == pa.decimal128(38, 38)
    assert of("decimal", "decimal(39,1)") == pa.string()
    assert of("bit", "bit(63)") == pa.int64()
    assert of("bit", "bit(64)") == pa.decimal128(20, 0)
    assert of("time", "time(6)") == pa.int64()
    assert of("timestamp", "timestamp") == pa.timestamp("us", tz="UTC")
    assert of("char", "char(3)", "latin1") == pa.string()
    assert from_catalog("binary", "binary(16)", None) == ColumnType(Kind.BINARY, length=16)
