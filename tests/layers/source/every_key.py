"""Tables with every kind of key."""

from collections.abc import Sequence

from catchment.model.table import TableId

# Columns of the key, and SQL for the values of row `seq` (1 to 60). The third part, where there is one, is the key.
KEYS: dict[str, tuple[str, ...]] = {
    "bigint": ("k BIGINT", "seq * 1000003 - 30000000"),
    "unsigned": ("k BIGINT UNSIGNED", "18446744073709551615 - seq * 7"),
    "decimal": ("k DECIMAL(20,6)", "(seq - 30) * 1234567.891234"),
    "decimal as text": (
        "k DECIMAL(65,30)",
        "(seq - 30) * 98765432101234567890.123456789012345678901234567891",
    ),
    "date": ("k DATE", "'2020-01-01' + INTERVAL seq * 17 DAY"),
    "datetime": ("k DATETIME(6)", "'2020-01-01' + INTERVAL seq * 1000001 MICROSECOND"),
    "timestamp": ("k TIMESTAMP(3)", "'2020-01-01' + INTERVAL seq * 1001000 MICROSECOND"),
    "time": ("k TIME(2)", "SEC_TO_TIME((seq - 30) * 100000.25)"),
    "year": ("k YEAR", "IF(seq = 7, 0, 1940 + seq)"),
    "varbinary": ("k VARBINARY(9)", "UNHEX(CONCAT(LPAD(HEX((seq * 37) MOD 256), 2, '0'), '00'))"),
    "trailing bytes": (
        "k VARBINARY(40)",
        "CONCAT('a', REPEAT(ELT(1 + seq MOD 2, x'00', ' '), seq DIV 2))",
    ),
    "binary": ("k BINARY(3)", "UNHEX(LPAD(HEX(seq * 70001), 6, '0'))"),
    "binary that ends in zero": ("k BINARY(3)", "UNHEX(CONCAT(LPAD(HEX(seq), 2, '0'), '00'))"),
    "uuid": (
        "k UUID",
        "CONCAT(LPAD(HEX((seq * 37) MOD 256), 8, '0'), '-0000-1000-8000-', LPAD(HEX(seq), 12, '0'))",
    ),
    "inet4": ("k INET4", "CONCAT((seq * 37) MOD 256, '.', seq, '.0.0')"),
    "inet6": ("k INET6", "CONCAT(HEX(seq * 999), '::', HEX(seq), ':0')"),
    "collated": (
        "k VARCHAR(20) COLLATE utf8mb4_general_ci",
        "CONCAT(ELT(1 + seq MOD 4, 'a', 'B', 'é', 'Z'), seq)",
    ),
    "trailing spaces": ("k CHAR(12)", "CONCAT(' ', seq, '  ')"),
    "spaces that count": (
        "k VARCHAR(70) COLLATE utf8mb4_nopad_bin",
        "CONCAT('a', REPEAT(' ', seq), IF(seq MOD 3, '', 'b'))",
    ),
    "latin1": ("k VARCHAR(9) CHARACTER SET latin1", "CONCAT(ELT(1 + seq MOD 3, 'ä', 'z', '%'), seq)"),
    "gbk": ("k VARCHAR(9) CHARACTER SET gbk", "CONCAT(ELT(1 + seq MOD 3, '中', '文', 'a'), seq)"),
    "sjis": (
        "k VARCHAR(9) CHARACTER SET sjis COLLATE sjis_bin",
        "CONCAT(ELT(1 + seq MOD 3, 'ｱ', '表', 'a'), seq)",
    ),
    "utf16": ("k VARCHAR(9) CHARACTER SET utf16", "CONCAT(ELT(1 + seq MOD 3, '😀', '文', 'a'), seq)"),
    "enum": ("e ENUM('z','a','m','b'), n INT", "ELT(1 + seq MOD 4, 'z', 'a', 'm', 'b'), seq"),
    "enum that may be invalid": ("e ENUM('z','表') CHARACTER SET sjis, n INT", "seq MOD 3, seq"),
    "set": ("s SET('z','a','m','b','q','c')", "seq"),
    "set of 64": (
        f"s SET({', '.join(repr(f'l{n}') for n in range(64))})",
        "IF(seq MOD 2, 18446744073709551615, 9223372036854775808 + 60) - seq",
    ),
    "enum of many": (
        f"e ENUM({', '.join(repr(f'l{n}') for n in range(1200))}), n INT",
        "1 + (seq MOD 5) * 299, seq",
    ),
    "set in a key": ("s SET('z','a'), b BIT(3), n INT", "seq MOD 4, seq MOD 3, seq"),
    "bit": ("k BIT(17)", "seq * 2000"),
    "bit(64)": ("k BIT(64)", "18446744073709551615 - seq * 7"),
    "float": ("k FLOAT", "seq / 7 - 3"),
    "float of many digits": ("k FLOAT", "(seq - 30) * 123456.789"),
    "double": ("k DOUBLE", "(seq - 30) / 7e30"),
    "double(m,d)": ("k DOUBLE(20,5)", "(seq - 30) / 7e0"),
    "composite": (
        "a INT, b VARCHAR(5), c DATE",
        "seq MOD 5 - 2, CONCAT('x', seq MOD 7), '2020-01-01' + INTERVAL seq DAY",
    ),
    "composite, ordered": (
        "a INT UNSIGNED, b VARBINARY(5), c DECIMAL(9,2)",
        "seq MOD 5, REPEAT(x'00', seq MOD 3), seq * -1.25",
    ),
    "composite, all sorts": (
        "a TIME(1), b DOUBLE, c UUID, d DATETIME(3), e DECIMAL(50,20), f BINARY(2)",
        "SEC_TO_TIME(seq MOD 3 - 1), seq MOD 5 / 7, UUID(), NOW(3), seq MOD 7 / 3, x'00'",
    ),
    "descending": ("a INT, b INT", "seq MOD 5, seq", "PRIMARY KEY (a DESC, b)"),
    "text, descending": ("a VARCHAR(9), b INT", "CONCAT('é', seq MOD 5), seq", "PRIMARY KEY (a, b DESC)"),
    "prefix": ("k VARCHAR(20)", "CONCAT(LPAD(60 - seq, 2, '0'), 'abc', seq)", "PRIMARY KEY (k(2))"),
    "prefix of bytes": ("k BLOB, n INT", "CONCAT(x'00ff', seq MOD 4), seq", "PRIMARY KEY (k(3), n)"),
    "unique": (
        "k INT NOT NULL, m INT NOT NULL, o INT",
        "60 - seq, seq, seq",
        "UNIQUE KEY zz (k), UNIQUE KEY nullable (o), UNIQUE KEY part (m), KEY aa (m)",
    ),
    "names": ("`we``ird ?%s` INT, `select` INT", "seq MOD 3, seq"),
}

_MARIADB_ONLY = ("uuid", "inet4", "inet6", "spaces that count", "composite, all sorts")
# Of these, the keys by which rows cannot be asked for.
UNNAMED = {
    "decimal as text", "time", "uuid", "inet4", "inet6", "gbk", "sjis", "utf16", "gb18030", "enum",
    "enum that may be invalid", "set", "set of 64", "enum of many", "set in a key", "bit", "bit(64)", "float",
    "float of many digits", "double", "double(m,d)", "composite, all sorts",
}  # fmt: skip
MYSQL_ONLY: dict[str, tuple[str, ...]] = {
    "no pad": (
        "k VARCHAR(70) COLLATE utf8mb4_0900_ai_ci",
        "CONCAT(ELT(1 + seq MOD 2, 'a', 'É'), REPEAT(' ', seq), IF(seq MOD 3, '', 'b'))",
    ),
    "no pad, case counts": (
        "k VARCHAR(20) COLLATE utf8mb4_0900_as_cs",
        "CONCAT(ELT(1 + seq MOD 4, 'a', 'A', 'é', 'e'), seq DIV 4)",
    ),
    "gb18030": ("k VARCHAR(9) CHARACTER SET gb18030", "CONCAT(ELT(1 + seq MOD 3, '中', '😀', 'a'), seq)"),
    "functional unique key in front": (
        "k INT NOT NULL, m INT NOT NULL",
        "60 - seq, seq",
        "UNIQUE KEY aa ((k + m * 100)), UNIQUE KEY bb (k)",
    ),
    "unique, descending": ("k INT NOT NULL, m INT NOT NULL", "seq MOD 5, seq", "UNIQUE KEY (k DESC, m)"),
}
ON_MYSQL = {name: key for name, key in KEYS.items() if name not in _MARIADB_ONLY} | MYSQL_ONLY
_ALL = KEYS | MYSQL_ONLY


def parts(text: str) -> list[str]:
    """Parts between commas; commas within brackets and quotes do not part them."""
    found, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "'"
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def names_of(name: str) -> list[str]:
    """The columns of a key."""
    return [p.split(" ")[0] if p[0] != "`" else p.rpartition(" ")[0] for p in parts(_ALL[name][0])]


def making(table: TableId, name: str, rows: Sequence[int]) -> list[str]:
    """Statements for a table with a key of that kind, and columns `filler` (the row's `seq`) and `other`."""
    columns, _, *key = _ALL[name]
    declared = key[0] if key else f"PRIMARY KEY ({', '.join(names_of(name))})"
    return [
        f"CREATE TABLE {table} ({columns}, filler INT, other INT, {declared}) CHARACTER SET utf8mb4",
        insertion(table, name, rows),
    ]


def insertion(table: TableId, name: str, rows: Sequence[int]) -> str:
    """INSERT of the rows with these `seq`; one whose key is there already is left out."""
    numbers = " UNION ALL ".join(f"SELECT CAST({seq} AS SIGNED) AS seq" for seq in rows)
    return f"INSERT IGNORE INTO {table} SELECT {_ALL[name][1]}, seq, 0 FROM ({numbers}) AS numbers"


def key_change(table: TableId, name: str, row: int, to: int) -> str:
    """UPDATE of a row's key to the one of another `seq`."""
    values = zip(names_of(name), parts(_ALL[name][1]), strict=True)
    changed = ", ".join(f"{column} = {value}" for column, value in values)
    return (
        f"UPDATE IGNORE {table}, (SELECT CAST({to} AS SIGNED) AS seq) AS number SET {changed} "
        f"WHERE filler = {row}"
    )
