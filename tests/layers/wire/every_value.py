"""Columns of every type with odd and random values, drawn from a seed, for any server that is under test."""

import json
import math
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from catchment.wire.cells import charsets

Draw = Callable[[random.Random], str]
MODES = (
    "",
    "ALLOW_INVALID_DATES",
    "ALLOW_INVALID_DATES,PAD_CHAR_TO_FULL_LENGTH",
    "ALLOW_INVALID_DATES,NO_BACKSLASH_ESCAPES,ANSI_QUOTES",
    "ALLOW_INVALID_DATES,STRICT_ALL_TABLES",
)
NULLS = 0.05
_MOMENTS = (-62_135_596_800, 253_402_214_400)


class Case(msgspec.Struct, frozen=True):
    """A type: its definition, SQL of its odd values by name, and how a random value is drawn.

    `on`: the servers that have it; `mariadb-11` and `mysql-9` for those of the newer ones only.

    `charset` stands in the definition of a type that has one; then `draw` and the odd values are of that set.
    """

    name: str
    definition: str
    odd: dict[str, str]
    draw: Draw
    on: str = "mariadb mysql"


def whole(low: int, high: int) -> Draw:
    return lambda chance: str(
        chance.choice([low, high, chance.randint(low, high), chance.randint(low, min(high, max(low, 0) + 9))])
    )


def number(digits: int, scale: int, signs: str = "-+") -> Draw:
    def draw(chance: random.Random) -> str:
        value = chance.randrange(10 ** chance.randint(0, digits))
        return f"{chance.choice(signs)}{value // 10**scale}.{value % 10**scale:0{scale}}".rstrip(".")

    return draw


def real(form: str) -> Draw:
    def draw(chance: random.Random) -> str:
        while True:
            (value,) = struct.unpack(form, chance.randbytes(struct.calcsize(form)))
            if math.isfinite(value) and abs(value) > 1e-300:
                return repr(value) if form == "<d" or abs(value) > 1e-37 else "0.5"

    return draw


def moment(low: int = _MOMENTS[0], high: int = _MOMENTS[1]) -> Draw:
    return lambda chance: (
        f"TIMESTAMP '1970-01-01 00:00:00' + INTERVAL {chance.randint(low, high)} SECOND"
        f" + INTERVAL {chance.randrange(10**6)} MICROSECOND"
    )


def clock(chance: random.Random) -> str:
    seconds = chance.randint(0, 3_020_398)
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{chance.randrange(10**6):06}"
    return f"'{chance.choice(['', '-'])}{text}'"


def octets(longest: int) -> Draw:
    def draw(chance: random.Random) -> str:
        value = chance.randbytes(chance.randint(0, longest))
        return f"x'{(value + chance.choice([b'', bytes(1), b' ']))[:longest].hex()}'"

    return draw


def floats(size: int) -> Draw:
    """Bytes of a VECTOR: finite floats."""

    def draw(chance: random.Random) -> str:
        some = [chance.randbytes(4) for _ in range(size)]
        finite = [value if value[3] & 0x7F != 0x7F else bytes(4) for value in some]
        return f"x'{b''.join(finite).hex()}'"

    return draw


def text_of(charset: str, longest: int) -> Draw:
    """Text of a set as its own bytes: any code that it has."""
    if charset in (*charsets.UTF8, *charsets.WIDE):
        alphabet = (
            "aé€ ߿ࠀ\uffff'\\%\n😀\U0010ffff" if charset not in ("utf8mb3", "ucs2") else "aé€ ߿ࠀ\uffff'\\%"
        )
        codec = charsets.WIDE.get(charset, "utf-8")
        every = [letter.encode(codec) for letter in alphabet]
    else:
        every = list(charsets.characters(charset))
    if charset == "gb18030":
        every += [letter.encode("gb18030") for letter in "😀\U0010ffff"] * 2000 + [b"\x84\x31\xa5\x30"]
    return lambda chance: (
        f"CONVERT(x'{b''.join(chance.choices(every, k=chance.randint(0, longest))).hex()}' USING {charset})"
    )


def spot(chance: random.Random) -> str:
    """A point on the globe."""
    return f"ST_GeomFromText('POINT({chance.randint(-89, 89)} {chance.random()})', 4326)"


def address(chance: random.Random) -> str:
    """An INET6 with many zero words."""
    return (
        f"'{':'.join(chance.choice(['0', '0', 'ffff', f'{chance.randrange(2**16):x}']) for _ in range(8))}'"
    )


def document(chance: random.Random) -> str:
    """A JSON document as SQL that does not depend on the sql_mode."""

    def value(depth: int) -> object:
        kind = chance.randrange(9 if depth else 7)
        if kind == 7:
            return [value(depth - 1) for _ in range(chance.randrange(4))]
        if kind == 8:
            return {chance.choice('abé"\\ ') * chance.randrange(1, 3): value(depth - 1) for _ in range(3)}
        return [
            None,
            True,
            chance.randint(-(2**63), 2**64 - 1),
            chance.uniform(-1e9, 1e9),
            'é"\\\n😀',
            "",
            0,
        ][kind]

    return as_json(value(3))


def as_json(value: object) -> str:
    return f"CONVERT(x'{json.dumps(value, ensure_ascii=False).encode().hex()}' USING utf8mb4)"


def _spread(*literals: str) -> dict[str, str]:
    return {literal: literal for literal in literals}


def _integers() -> Iterator[Case]:
    for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64)):
        low, high, top = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 2**bits - 1
        yield Case(name, name, _spread(str(low), str(high), "-1", "0"), whole(low, high))
        for zero in ("", " zerofill"):
            kind = f"{name} unsigned{zero}"
            yield Case(kind, kind, _spread("0", str(top), str(high + 1)), whole(0, top))


def _decimals() -> Iterator[Case]:
    for digits, scale in ((1, 0), (9, 4), (18, 18), (38, 10), (30, 30), (38, 38), (39, 1), (65, 30), (65, 0)):
        most = f"{'9' * (digits - scale) or '0'}.{'9' * scale}".rstrip(".")
        odd = _spread(most, f"-{most}", "0", "-0.0", f"0.{'0' * max(scale - 1, 0)}1")
        kind = f"decimal({digits},{scale})"
        yield Case(kind, kind, odd, number(digits, scale), "mariadb mysql" if scale <= 30 else "mariadb")
        if digits in (9, 65):
            zeros = f"{kind} unsigned zerofill"
            yield Case(zeros, zeros, _spread(most, "0", "0.5"), number(digits, scale, "+"))


def _reals() -> Iterator[Case]:
    odd = _spread("3.4028235e38", "-1.1754944e-38", "16777217", "0.1", "-0e0")
    yield Case("float", "float", odd, real("<f"))
    odd = _spread("1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "-0e0", "9007199254740993")
    yield Case("double", "double", odd, real("<d"))
    yield Case("float(7,3)", "float(7,3) unsigned", _spread("1234.567", "0.001"), number(7, 3, "+"))
    yield Case(
        "double(20,5)", "double(20,5) zerofill", _spread("0", "999999999999999.99999"), number(19, 5, "+")
    )


def _bits() -> Iterator[Case]:
    for size in (1, 7, 8, 9, 17, 33, 63, 64):
        yield Case(f"bit({size})", f"bit({size})", _spread("0", "1", str(2**size - 1)), whole(0, 2**size - 1))


def _moments() -> Iterator[Case]:
    dates = ("0000-00-00", "2024-02-29", "0001-01-01", "9999-12-31", "2023-00-10", "2023-10-00", "2023-02-30")
    yield Case("year", "year", _spread("0", "1901", "2155"), whole(1901, 2155))
    yield Case("date", "date", _spread(*(f"'{d}'" for d in dates)), moment())
    for scale in (0, 1, 2, 3, 4, 5, 6):
        kind = f"time({scale})"
        odd = (
            "-838:59:59",
            "838:59:59",
            "00:00:00",
            "-00:00:00.5",
            "-00:00:01",
            "-01:02:03.456789",
            "23:59:59.999999",
        )
        yield Case(kind, kind, _spread(*(f"'{t}'" for t in odd)), clock)
        kind = f"datetime({scale})"
        yield Case(
            kind, kind, _spread(*(f"'{d} 10:20:30.123456'" for d in dates), "'0000-00-00 00:00:00'"), moment()
        )
        kind = f"timestamp({scale})"
        stamps = (
            "1970-01-01 00:00:01",
            "2038-01-19 03:14:06.9",
            "0000-00-00 00:00:00",
            "2001-01-01 00:00:00.000001",
        )
        yield Case(kind, f"{kind} null", _spread(*(f"'{t}'" for t in stamps)), moment(1, 2**31 - 3))


def _bytes() -> Iterator[Case]:
    odd = _spread("''", "x'00'", "x'6100'", "x'6120'", "x'ff00ff00'")
    for kind in (
        "binary(4)",
        "binary(255)",
        "varbinary(40)",
        "varbinary(300)",
        "tinyblob",
        "blob",
        "longblob",
    ):
        yield Case(kind, kind, odd, octets(4 if kind == "binary(4)" else 40))
    packed = odd | {"long": "repeat(x'ab00', 5000)"}
    yield Case("blob compressed", "blob compressed", packed, octets(90), "mariadb")
    yield Case("varbinary compressed", "varbinary(300) compressed", odd, octets(300), "mariadb")
    shapes = ("POINT(1 -2)", "LINESTRING(0 0,1 1,2 2)", "POLYGON((0 0,0 1,1 1,0 0))", "MULTIPOINT(1 1,2 2)")
    odd = {f"{shape} {srid}": f"ST_GeomFromText('{shape}', {srid})" for shape in shapes for srid in (0, 4326)}
    yield Case("geometry", "geometry", odd, spot)
    yield Case(
        "point", "point", {"origin": "POINT(0, 0)"}, lambda chance: f"POINT({chance.random()}, -1e300)"
    )


def _vectors() -> Iterator[Case]:
    """Neither server takes a number that is not finite."""
    odd = {
        "zeros": "x'00000000 00000080 00000000'",
        "extremes": "x'ffff7f7f ffff7fff 01000000'",
        "least": "x'00008000 01000080 0000803f'",
    }
    literals = {name: literal.replace(" ", "") for name, literal in odd.items()}
    for size in (3, 600):
        some = {name: f"REPEAT({literal}, {size // 3})" for name, literal in literals.items()}
        yield Case(f"vector({size})", f"vector({size})", some, floats(size), "mariadb-11 mysql-9")


def _mariadb_only() -> Iterator[Case]:
    odd = _spread(f"'{'0' * 32}'", f"'{'f' * 32}'", "'123e4567-e89b-12d3-a456-426614174000'")
    yield Case("uuid", "uuid", odd, lambda chance: f"'{chance.randbytes(16).hex()}'", "mariadb")
    odd = _spread("'0.0.0.0'", "'255.255.255.255'", "'10.0.0.0'")
    yield Case(
        "inet4", "inet4", odd, lambda chance: f"'{'.'.join(str(b) for b in chance.randbytes(4))}'", "mariadb"
    )
    odd = _spread("'::'", "'::1'", "'::ffff:1.2.3.4'", "'::1.2.3.4'", "'2001:db8::'", "'1:0:2:0:0:3:0:0'")
    yield Case("inet6", "inet6", odd, address, "mariadb")
    yield Case("invisible", "int invisible default 5", _spread("default", "-1"), whole(-9, 9), "mariadb")


def _rest() -> Iterator[Case]:
    odd = {"object": as_json({"b": 1, "a": [1.5, None, "é"]}), "empty": as_json([]), "text": as_json("")}
    yield Case("json", "json", odd | {"large": as_json(list(range(3000)))}, document)
    yield Case("virtual", "int as (id % 1000 + 7) virtual", {"default": "default"}, lambda chance: "default")
    yield Case(
        "stored",
        "varchar(20) as (concat('é', id % 1000)) stored",
        {"default": "default"},
        lambda chance: "default",
    )


PLAIN = (
    *_integers(),
    *_decimals(),
    *_reals(),
    *_bits(),
    *_moments(),
    *_bytes(),
    *_vectors(),
    *_mariadb_only(),
    *_rest(),
)
TEXTS = {
    "char(20)": 20,
    "char(60)": 60,
    "varchar(20)": 20,
    "varchar(90)": 90,
    "text": 300,
    "longtext": 900,
    "varchar(70) compressed": 70,
    "text compressed": 600,
    "enum": 0,
    "set": 0,
}


def text_case(kind: str, charset: str, collation: str) -> Case:
    """A column of text, or of labels, in a character set."""
    of = f"character set {charset} collate {collation}"
    on = "mariadb" if "compressed" in kind else "mariadb mysql"
    if kind in ("enum", "set"):
        labels = ["a", "b c", "x''y", *_labels(charset)]
        listed = ", ".join(f"'{label}'" for label in labels)
        odd = {"0": "0", "last": str(2 ** (len(labels) - 1) if kind == "set" else len(labels)), "first": "1"}
        most = 2 ** len(labels) - 1 if kind == "set" else len(labels)
        return Case(kind, f"{kind}({listed}) {of}", odd, whole(1, most), on)
    base, _, packed = kind.partition(" ")
    longest = TEXTS[kind]
    odd = {
        "empty": "''",
        "spaces": "'a  '",
        "zero": "CONCAT('x', CHAR(0), 'y')",
        "long": f"REPEAT('z', {longest})",
    }
    # MariaDB 11 wants COMPRESSED before CHARACTER SET, 10.11 takes it anywhere.
    return Case(kind, f"{base} {packed} {of}", odd, text_of(charset, longest), on)


def _labels(charset: str) -> list[str]:
    """Labels outside of ASCII that the set has, at most two."""
    found = []
    for letter in "表éжאกա":
        try:
            known = (
                charset in (*charsets.UTF8, *charsets.WIDE) or letter in charsets.characters(charset).values()
            )
        except KeyError:
            known = False
        if known:
            found.append(letter)
    return found[:2]


class Drawn(msgspec.Struct, frozen=True):
    """A table: its columns in order, its mode, and the SQL of each row's values."""

    cases: tuple[Case, ...]
    mode: str
    rows: tuple[tuple[str, ...], ...]


_GENERATED = ("virtual", "stored")


def draw(
    seed: int,
    flavour: str,
    rows: int,
    collations: Sequence[tuple[str, str]],
    met: Counter[str],
    *,
    generated: bool = True,
) -> Drawn:
    """A table of all types; every odd value of every type is in one of its rows. `collations`: sets and collations
    of its columns of text, in turn. `met` counts values by type and by odd value. `generated`: some columns are."""
    chance = random.Random(seed)
    servers = {flavour, flavour.partition("-")[0]}
    cases = [case for case in PLAIN if servers & set(case.on.split())]
    cases = [case for case in cases if generated or case.name not in _GENERATED]
    kinds = [kind for kind in TEXTS if "mariadb" in servers or "compressed" not in kind]
    for i, kind in enumerate(kinds):
        charset, collation = collations[(seed * len(kinds) + i) % len(collations)]
        cases.append(text_case(kind, charset, collation))
        met[f"charset {charset}"] += rows
    chance.shuffle(cases)
    columns = []
    for case in cases:
        odd = list(case.odd.items())
        assert len(odd) < rows, case.name
        values = [literal for _, literal in odd] + [
            "NULL" if chance.random() < NULLS and "default" not in case.odd else case.draw(chance)
            for _ in range(rows - len(odd))
        ]
        met.update(f"{case.name}: {name}" for name, _ in odd)
        met[case.name] += rows
        chance.shuffle(values)
        columns.append(values)
    return Drawn(tuple(cases), MODES[seed % len(MODES)], tuple(zip(*columns, strict=True)))
