"""Random expressions over the table of the judge, as texts."""

from collections.abc import Sequence

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]

_INTEGERS = (
    "ti",
    "su",
    "i",
    "iu",
    "b",
    "ub",
    "bt",
    "id",
    "0",
    "1",
    "-3",
    "7",
    "65535",
    "9223372036854775807",
)
_DECIMALS = ("d", "dl", "di", "0.5", "-1.250", "100.0", "0.0")
_DOUBLES = ("f", "g", "1e0", "-2.5e0", "1e-3")
_TEXTS = ("t", "tb", "tn", "a", "l", "e", "s", "'a'", "'A'", "'a '", "''", "'é'", "'paid'", "'x,z'")
_BINARY = ("tb", "tn", "a", "e", "s", "t COLLATE utf8mb4_bin", "CONVERT(l USING utf8mb4) COLLATE utf8mb4_bin")
_WRITTEN = ("'a'", "'A'", "'a '", "''", "'é'", "'paid'", "'x'", "'b'", "'7'")
_PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", "'a_b|%'", "'%|%%'", "''", "'a.b'", "'[a]%'", "'é'", "'%a%b%'")
_BYTES = ("bl", "bi", "CAST(t AS BINARY)", "CAST(a AS BINARY)", "'a'", "X'ff00'", "BINARY tb")
_DATES = ("dy", "CAST(dt AS DATE)", "DATE(ts)", "'2026-01-31'", "DATE '2024-02-29'")
_MOMENTS = (
    "dt",
    "ds",
    "ts",
    "'2026-01-31 00:00:00'",
    "'2024-02-29 12:30:45.5'",
    "TIMESTAMP '2026-01-31 23:59:59'",
)
_TIMES = ("tm", "'23:59:59'", "'-01:00:00.25'")
_SIGNS = st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "<=>"))
_DEPTH = 3


def _from(values: Sequence[str]) -> Texts:
    return st.sampled_from(values)


def integers(depth: int = _DEPTH) -> Texts:
    plain = _from(_INTEGERS)
    if depth == 0:
        return plain
    inner = integers(depth - 1)
    return st.one_of(
        plain,
        st.builds("({} {} {})".format, inner, _from(("+", "-", "*", "DIV", "%")), inner),
        st.builds("{}({})".format, _from(("ABS", "-")), inner),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds("IF({}, {}, {})".format, conditions(depth - 1), inner, inner),
        st.builds("CASE {} WHEN {} THEN {} ELSE {} END".format, inner, inner, inner, inner),
        st.builds("NULLIF({}, {})".format, inner, inner),
        st.builds("CHAR_LENGTH({})".format, texts(depth - 1)),
        st.builds("LENGTH({})".format, texts(depth - 1)),
        st.builds(
            "{}({})".format, _from(("YEAR", "MONTH", "DAY", "QUARTER")), _from((*_DATES[:3], *_MOMENTS[:3]))
        ),
        st.builds("{}({})".format, _from(("HOUR", "MINUTE", "SECOND")), _from(_MOMENTS[:3])),
        st.builds(
            "CAST({} AS {})".format, st.one_of(inner, _from(("d", "di", "y"))), _from(("SIGNED", "UNSIGNED"))
        ),
        conditions(depth - 1).map("({})".format),
    )


def decimals(depth: int = _DEPTH) -> Texts:
    plain = _from(_DECIMALS)
    if depth == 0:
        return plain
    inner, other = decimals(depth - 1), st.one_of(decimals(depth - 1), integers(0))
    return st.one_of(
        plain,
        st.builds("({} {} {})".format, inner, _from("+-*"), other),
        st.builds("({} {} {})".format, other, _from("+-*"), inner),
        st.builds("CAST({} AS DECIMAL({}))".format, other, _from(("10,2", "5,0", "38,10", "20", "3,3"))),
        st.builds("{}({})".format, _from(("ABS", "-")), inner),
        st.builds("IFNULL({}, {})".format, inner, other),
    )


def doubles(depth: int = _DEPTH) -> Texts:
    if depth == 0:
        return _from(_DOUBLES)
    plain = _from(_DOUBLES[1:])  # the server shows six digits of a FLOAT
    inner, other = doubles(depth - 1), st.one_of(doubles(depth - 1), integers(0), decimals(0))
    return st.one_of(
        plain,
        st.builds("({} {} {})".format, inner, _from("+-*/"), other),
        st.builds("CAST({} AS DOUBLE)".format, other),
        st.builds("{}({})".format, _from(("ABS", "-")), inner),
    )


def texts(depth: int = _DEPTH) -> Texts:
    plain = _from(_TEXTS)
    if depth == 0:
        return plain
    inner = texts(depth - 1)
    count = _from(("0", "1", "2", "3", "-1", "-2", "50", "-50"))
    return st.one_of(
        plain,
        st.builds(
            "CONCAT({}, {})".format, inner, st.one_of(inner, integers(0), _from(("d", "dy", "dt", "ts")))
        ),
        st.builds("SUBSTRING({}, {}, {})".format, inner, count, count),
        st.builds("SUBSTRING({}, {})".format, inner, count),
        st.builds("{}({}, {})".format, _from(("LEFT", "RIGHT")), inner, count),
        st.builds("{}({})".format, _from(("TRIM", "LTRIM", "RTRIM")), inner),
        st.builds("{}(a)".format, _from(("UPPER", "LOWER"))),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds(
            "CAST({} AS CHAR)".format,
            st.one_of(inner, integers(0), _from(("d", "di", "dy", "dt", "ds", "ts"))),
        ),
        st.builds("CAST({} AS CHAR(2))".format, inner),
        st.builds("IF({}, {}, {})".format, conditions(depth - 1), inner, inner),
    )


def _compared(side: Texts, other: Texts | None = None) -> Texts:
    other = side if other is None else other
    return st.one_of(
        st.builds("{} {} {}".format, side, _SIGNS, other),
        st.builds(
            "{} {}IN ({}, {})".format, side, _from(("", "NOT ")), other, st.one_of(other, st.just("NULL"))
        ),
        st.builds("{} {}BETWEEN {} AND {}".format, side, _from(("", "NOT ")), other, other),
        st.builds("{} IS {}NULL".format, side, _from(("", "NOT "))),
    )


def conditions(depth: int = _DEPTH) -> Texts:
    flat = st.one_of(
        _compared(st.one_of(integers(0), decimals(0))),
        _compared(doubles(0)),
        _compared(_from(_BINARY), _from(_WRITTEN)),
        _compared(_from(_BYTES)),
        _compared(_from(_DATES[:3]), _from(_DATES)),
        _compared(_from(_MOMENTS[:3]), _from((*_MOMENTS, "dy"))),
        _compared(st.just("tm"), _from(_TIMES)),
        st.builds(
            "{} {}LIKE {} ESCAPE '|'".format,
            _from((*_BINARY, "bl", "bi")),
            _from(("", "NOT ")),
            _from(_PATTERNS),
        ),
        st.builds("{} IS {}NULL".format, _from(("t", "l", "y", "ub", "f")), _from(("", "NOT "))),
        _from(("i", "TRUE", "FALSE", "NULL", "ub")),
    )
    if depth == 0:
        return flat
    inner = conditions(depth - 1).map("({})".format)
    return st.one_of(
        flat,
        st.builds("{} {} {}".format, inner, _from(("AND", "OR", "XOR")), inner),
        st.builds("NOT {}".format, inner),
        st.builds("{} IS {}{}".format, inner, _from(("", "NOT ")), _from(("TRUE", "FALSE"))),
        _compared(integers(depth - 1)),
        _compared(decimals(depth - 1)),
        _compared(doubles(depth - 1)),
    )
