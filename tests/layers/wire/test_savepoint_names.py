"""A savepoint is found by every name that its server takes for the same: judged by the servers themselves."""

from contextlib import closing

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.wire.log.savepoint_names import names_of, without_case, without_case_and_marks
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.test_log_groups import insert, kept, table  # noqa: F401

# Those that identifiers can have.
LETTERS = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code <= 0xDFFF]
AT_ONCE = 1000
SERVERS = {
    "shard": "utf8mb3_general_ci",
    "mysql_server": "utf8_general_ci",
    "mysql_97_server": "utf8mb3_general_ci",
    "mariadb_11_server": "utf8mb3_general1400_as_ci",
}
PAIRS = (
    ("e", "É"),
    ("s", "ß"),
    ("S", "ſ"),
    ("ё", "Е"),
    ("ss", "ß"),
    ("o", "ø"),
    ("и", "й"),
    ("か", "が"),
    ("ΑΣ", "ας"),
)


def weights(server: PrivateServer, collation: str) -> dict[str, str]:
    """What a server compares of each letter."""
    charset = collation.partition("_")[0]
    found: dict[str, str] = {}
    for start in range(0, len(LETTERS), AT_ONCE):
        part = LETTERS[start : start + AT_ONCE]
        asked = ", ".join(
            f"HEX(WEIGHT_STRING(CONVERT(_utf8mb4 X'{one.encode().hex()}' USING {charset}) COLLATE {collation}))"
            for one in part
        )
        found |= dict(zip(part, server.sql(f"SELECT {asked}")[0], strict=True))
    return found


def classes(of: dict[str, str]) -> set[frozenset[str]]:
    """The letters that are one letter, where there are several."""
    found: dict[str, set[str]] = {}
    for letter, weight in of.items():
        found.setdefault(weight, set()).add(letter)
    return {frozenset(ones) for ones in found.values() if len(ones) > 1}


@pytest.mark.parametrize("fixture", SERVERS)
def test_each_letter_and_some_names(fixture: str, request: pytest.FixtureRequest) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    version = str(server.sql("SELECT VERSION()")[0][0])
    same = names_of(version.encode(), mysql="MariaDB" not in version)
    assert same is (without_case if fixture == "mariadb_11_server" else without_case_and_marks)
    assert classes({one: same(one) for one in LETTERS}) == classes(weights(server, SERVERS[fixture]))
    with closing(server.connect(charset="utf8mb4", autocommit=False)) as session, session.cursor() as cursor:
        for name, other in PAIRS:
            cursor.execute("BEGIN")
            cursor.execute(f"SAVEPOINT `{name}`")
            try:
                cursor.execute(f"ROLLBACK TO SAVEPOINT `{other}`")
                found = True
            except pymysql.err.OperationalError:
                found = False
            assert found is (same(name) == same(other)), (name, other)


@pytest.mark.parametrize(
    ("version", "marks"), [(b"10.11.19-MariaDB-log", False), (b"11.4.2-MariaDB", False), (b"11.5.1-MariaDB", True),
                           (b"12.3.1-MariaDB", True), (b"8.0.15", False)]
)  # fmt: skip
def test_marks_count_from_a_version_on(version: bytes, marks: bool) -> None:
    same = names_of(version, mysql=b"MariaDB" not in version)
    assert (same("é") == same("E")) is not marks
    assert same("É") == same("é")


def test_a_log_with_names_of_other_case_and_marks(
    session: Session,
    shard: PrivateServer,
    table: TableId,  # noqa: F811
) -> None:
    """A temporary table that was made behind a savepoint keeps undone rows, and what undoes them, in the log."""
    start = end_of_log(shard)
    run(
        session,
        f"USE {table.schema}",
        "BEGIN",
        insert(table, 1),
        "SAVEPOINT `é`",
        insert(table, 2),
        "SAVEPOINT E",  # takes the place of the first one
        insert(table, 3),
        "CREATE TEMPORARY TABLE scratch (a int)",
        "ROLLBACK TO `è`",
        insert(table, 4),
        "COMMIT",
    )
    decoder = decoded(read_dump(shard, start), start, wanted=[table])
    assert decoder.voids, "the log has the rows that were undone"
    assert kept(decoder) == [id_ for (id_,) in shard.sql(f"SELECT id FROM {table} ORDER BY id")] == [1, 2, 4]
