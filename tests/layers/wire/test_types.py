"""The tables of type facts and character sets, against what a server says."""

from collections.abc import Callable
from itertools import islice

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Unsupported
from catchment.model.table import ColumnType, Kind, TableId
from catchment.wire.cells import charset_differences, charsets, types
from catchment.wire.cells.types import arrow_type, from_catalog, from_log, logged_as_binary
from tests.layers.wire.answers import Session, columns_of, run
from tests.layers.wire.charset_survey import all_of, differences, said
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.odd_values import ODD


def test_every_collation_number(session: Session) -> None:
    told = run(
        session,
        "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY",
    )
    assert len(told) > 500
    wrong = [(number, name) for number, name in told if charsets.of_collation(int(number)) != name]
    assert wrong == []


@pytest.mark.parametrize("fixture", ["mysql_server", "mysql_97_server", "mariadb_11_server"])
def test_every_collation_number_of_other_servers(fixture: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(fixture)
    column = "FULL_COLLATION_NAME" if fixture == "mariadb_11_server" else "COLLATION_NAME"
    table = "COLLATION_CHARACTER_SET_APPLICABILITY" if fixture == "mariadb_11_server" else "COLLATIONS"
    told = server.sql(f"SELECT ID, CHARACTER_SET_NAME, {column} FROM information_schema.{table}")
    assert len(told) > 200
    named = {"utf8": "utf8mb3"}
    wrong = [row for row in told if charsets.of_collation(int(row[0])) != named.get(row[1], row[1])]
    assert wrong == []


def test_a_collation_number_not_known() -> None:
    assert charsets.of_collation(600) == "collation 600"
    assert not charsets.carried(charsets.of_collation(600))


SETS = sorted({*charsets.CODECS, *charsets.PAIRS} - {"gb18030"})


@pytest.mark.wide
def test_every_code_of_a_character_set(session: Session, subtests: pytest.Subtests) -> None:
    for charset in SETS:
        with subtests.test(charset):
            told = all_of(session, charset)
            assert charsets.characters(charset) == told
            assert (
                charset_differences.DIFFERENCES.get(charset, "").split() == differences(charset, told).split()
            )


def test_some_codes_of_a_character_set(session: Session, subtests: pytest.Subtests) -> None:
    """One in 23 of those that it has."""
    for charset in SETS:
        with subtests.test(charset):
            some = dict(islice(charsets.characters(charset).items(), 0, None, 23))
            assert len(some) >= 5
            assert said(session, charset, list(some)) == some


def test_every_character_set_of_the_server(session: Session) -> None:
    names = [row[0] for row in run(session, "SHOW CHARACTER SET")]
    assert [name for name in names if not charsets.carried(name)] == ["binary"]
    assert charsets.table("utf8mb4") is None
    with pytest.raises(KeyError):
        charsets.table("gb18030")


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
        f"CREATE TABLE {schema}.t (id int, {columns}, PRIMARY KEY (`c8 ``x`, `c0 ``x`))",
        f"CREATE TABLE {schema}.p (v varchar(99), b blob, PRIMARY KEY (b(5), v))",
        f"INSERT INTO {schema}.t (id, `c0 ``x`, `c8 ``x`) VALUES (1, 1, 2)",
        f"INSERT INTO {schema}.p VALUES ('a', 'b')",
    )
    wanted = {TableId(schema, "t"), TableId(schema, "p")}
    kinds = {table: logged_as_binary(columns_of(session, schema, table.name)) for table in wanted}
    images = decoded(read_dump(shard, start), start, wanted=wanted, kinds=kinds).take_images()
    assert [image.table.id.name for image in images] == ["t", "p"]
    for image in images:
        assert image.table.columns == columns_of(session, schema, image.table.id.name)
    assert images[0].table.key == ("c8 `x", "c0 `x")
    assert images[1].table.key == ("b", "v")


def test_refused_types() -> None:
    for code in (0, 7, 11, 12, 77):
        with pytest.raises(Unsupported):
            from_log(code, 0, False, 0, ())
    with pytest.raises(Unsupported, match="collation 600"):
        from_log(types.VARCHAR, 30, False, 600, ())
    with pytest.raises(Unsupported, match="xml"):
        from_catalog("xml", "xml", None)


@pytest.mark.parametrize("kind", ["inet4", "inet6", "uuid"])
def test_types_that_the_log_shows_as_binary(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], kind: str
) -> None:
    """Only the catalog knows these: the log declares them as BINARY of 4 or 16 bytes."""
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    size = 4 if kind == "inet4" else 16
    run(
        session,
        f"CREATE TABLE {schema}.t (odd {kind}, plain binary({size}))",
        f"INSERT INTO {schema}.t VALUES (NULL, NULL)",
    )
    table, columns, raw = TableId(schema, "t"), columns_of(session, schema, "t"), read_dump(shard, start)
    untold = decoded(raw, start, wanted=[table]).take_images()[0].table.columns
    assert {column.type for column in untold} == {ColumnType(Kind.BINARY, length=size)}
    kinds = logged_as_binary(columns)
    assert kinds == {"odd": Kind(kind)}
    told = decoded(raw, start, wanted=[table], kinds={table: kinds}).take_images()[0].table.columns
    assert told == columns
    wrong = {table: {"plain": Kind.INET4 if size == 16 else Kind.UUID}}  # the column has become another one
    assert decoded(raw, start, wanted=[table], kinds=wrong).take_images()[0].table.columns == untold


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
