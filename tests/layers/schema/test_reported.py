"""Statements that users of other systems have reported, as they write them: what a feed does with each, on both kinds
of server where both have it. test_clauses.py asks servers about the same clauses.
"""

from typing import Final

import pytest

from catchment.model.table import TableId
from catchment.schema.ddl import Columns, Harmless, effect

T = TableId("shop", "t")
COLUMNS = ("id", "a", "b", "c", "j", "v")
STRICT = 1 << 21
PASSES: Final = ""
MYSQL, MARIADB, BOTH = (True,), (False,), (True, False)

# By who reported them: the statement, and what it does. `+n` is a column that is NULL in every row, `+n=5` one with
# a value, `-c` one that goes, `~b` one with another definition and the same values.
REPORTED: Final[dict[str, dict[str, tuple[str, tuple[bool, ...]]]]] = {
    "zendesk/maxwell#2118": {
        "ALTER TABLE t ADD CONSTRAINT ck CHECK (a >= 0)": (PASSES, BOTH),
        "ALTER TABLE t ADD n INT NULL CHECK (n <> 7)": ("+n", BOTH),
        "ALTER TABLE t ADD CHECK (a IS NULL OR b LIKE 'x%')": (PASSES, BOTH),
        "ALTER TABLE t ADD CONSTRAINT CHECK (a <> 0) NOT ENFORCED": (PASSES, MYSQL),
        **{
            f"ALTER TABLE t ADD CONSTRAINT ck CHECK (a {mark} 7)": (PASSES, BOTH)
            for mark in (">=", "<=", "<>", "!=", "<=>", "&&", "||", "LIKE", "REGEXP", ">")
        },
    },
    "zendesk/maxwell, its changelog": {
        "ALTER TABLE t ADD n BIT(1) NOT NULL DEFAULT b'0'": ("+n=0", BOTH),
        "ALTER TABLE t ADD m TINYINT(1) DEFAULT b'1'": ("+m=1", BOTH),
        "ALTER TABLE t ADD k VARBINARY(4) NOT NULL DEFAULT x'00ff'": ("+k=00ff", BOTH),
        "ALTER TABLE t ADD h INT NOT NULL DEFAULT 0x1f": ("+h=31", BOTH),
    },
    "zendesk/maxwell#1611": {
        "ALTER TABLE t ENCRYPTION='Y'": (PASSES, MYSQL),
        "ALTER TABLE t COMPRESSION='zlib'": (PASSES, MYSQL),
        "ALTER TABLE t AUTOEXTEND_SIZE=4M": (PASSES, MYSQL),
        "ALTER TABLE t TABLESPACE innodb_file_per_table": (PASSES, MYSQL),
        "ALTER TABLE t SECONDARY_ENGINE=rapid": (PASSES, MYSQL),
        "ALTER TABLE t SECONDARY_LOAD": (PASSES, MYSQL),
    },
    "Debezium DBZ-7189, DBZ-4320": {
        "ALTER TABLE t ADD INDEX i1 ((CAST(j->'$.a' AS UNSIGNED)))": (PASSES, MYSQL),
        "ALTER TABLE t ADD INDEX i2 ((CAST(j->'$.a' AS UNSIGNED ARRAY)))": (PASSES, MYSQL),
        "ALTER TABLE t ADD INDEX i3 ((CAST(j->>'$.a' AS CHAR(10))), ((a >= 1)))": (PASSES, MYSQL),
        "CREATE INDEX i4 ON t ((CAST(j->'$.a' AS UNSIGNED)))": (PASSES, MYSQL),
    },
    "zendesk/maxwell#1567": {
        "ALTER TABLE t ADD p POINT NULL": ("+p", BOTH),
        "ALTER TABLE t ADD q POINT SRID 4326 NULL": ("+q", MYSQL),
        "ALTER TABLE t ADD r GEOMCOLLECTION NULL": ("+r", BOTH),
    },
    "alibaba/canal#3685": {
        "ALTER TABLE t PACK_KEYS=0 CHECKSUM=0 DELAY_KEY_WRITE=0 ROW_FORMAT=DYNAMIC": (PASSES, BOTH),
        "ALTER TABLE t TRANSACTIONAL=0": (PASSES, MARIADB),
        "ALTER TABLE t DROP COLUMN c CASCADE": ("-c", BOTH),
        "ALTER TABLE t DROP COLUMN c RESTRICT": ("-c", BOTH),
        "ALTER TABLE t ADD d NATIONAL VARCHAR(5) NULL": ("+d", BOTH),
        "ALTER TABLE t ADD d NCHAR(5) DEFAULT N'text'": ("+d=text", BOTH),
        "ALTER TABLE t DISABLE KEYS, ADD n INT NULL": ("+n", BOTH),
        "ALTER TABLE t DISABLE KEYS": (PASSES, BOTH),
    },
    "zendesk/maxwell#1727": {
        "ALTER TABLE t ADD n INT NULL VISIBLE": ("+n", MYSQL),
        "ALTER TABLE t ADD n INT NULL INVISIBLE": ("+n", BOTH),
        "ALTER TABLE t ADD m INT NULL COLUMN_FORMAT DYNAMIC STORAGE DISK": ("+m", MYSQL),
    },
    "Debezium DBZ-8582": {
        "ALTER TABLE t ADD w VECTOR(3) NOT NULL DEFAULT x'000000000000000000000000'": (
            "+w=000000000000000000000000",
            MARIADB,
        ),
        "ALTER TABLE t ADD VECTOR INDEX (v) M=6 DISTANCE=euclidean": (PASSES, MARIADB),
        "ALTER TABLE t ADD INDEX i (c) IGNORED": (PASSES, MARIADB),
        "ALTER TABLE t ALTER a SET DEFAULT NEXT VALUE FOR s": (PASSES, MARIADB),
        "CREATE SEQUENCE s": (PASSES, MARIADB),
        "ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY IF NOT EXISTS (a) REFERENCES p (id)": (PASSES, MARIADB),
    },
    "block/spirit, its commit cf98c106": {
        "ALTER TABLE t ADD n VARCHAR(10) BINARY NOT NULL DEFAULT 'x'": ("+n=x", BOTH),
        "ALTER TABLE t MODIFY b VARCHAR(20) BINARY": ("~b", BOTH),
        "ALTER TABLE t ADD k CHAR(5) CHARACTER SET latin1 BINARY NULL": ("+k", BOTH),
        "ALTER TABLE t ADD k CHAR(5) ASCII": ("+k", BOTH),
        "ALTER TABLE t ADD k CHAR(5) UNICODE": ("+k", BOTH),
        "ALTER TABLE t ADD k CHAR(5) COLLATE DEFAULT": ("+k", MARIADB),
    },
}


def done(sql: str, *, mysql: bool) -> str:
    did = effect(sql, "shop", [T], here={T: COLUMNS}, mysql=mysql, sql_mode=STRICT)
    if isinstance(did, Harmless):
        return PASSES
    if not isinstance(did, Columns):
        return did.reason
    values = {told.column: f"={told.value}" for told in did.filled}
    return " ".join(
        [
            *(f"-{name}" for name in did.dropped),
            *(f"~{one.column}" for one in did.modified),
            *(f"+{name}{values.get(name, '')}" for name in did.added),
        ]
    )


@pytest.mark.parametrize("who", REPORTED)
def test_what_is_reported_is_followed_or_goes_by(who: str) -> None:
    for sql, (wanted, servers) in REPORTED[who].items():
        assert [done(sql, mysql=mysql) for mysql in servers] == [wanted] * len(servers), sql
