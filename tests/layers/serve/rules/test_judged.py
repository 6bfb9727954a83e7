"""What a filter gives is what a real server gives for the same rows."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.layers.serve.rules import expressions
from tests.layers.serve.rules.judge import Judge

_FEW, _MANY = 25, 500
STRATEGIES = {
    "integers": expressions.integers(),
    "decimals": expressions.decimals(),
    "doubles": expressions.doubles(),
    "texts": expressions.texts(),
    "conditions": expressions.conditions(),
}


def judged(judge: Judge, kind: str, examples: int, *, same: bool) -> None:
    """So many expressions are what they are on the server, the same ones in every run or others."""
    taken = []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None, derandomize=same)
    @given(STRATEGIES[kind])
    def each(expression: str) -> None:
        taken.append(judge.judged(expression))

    each()
    assert sum(taken) > len(taken) / 2, "most are refused: little is judged"


@pytest.mark.parametrize("kind", STRATEGIES)
def test_random_expressions(judge: Judge, kind: str) -> None:
    judged(judge, kind, _FEW, same=True)


@pytest.mark.wide
@pytest.mark.parametrize("kind", STRATEGIES)
def test_many_random_expressions(judge: Judge, kind: str) -> None:
    judged(judge, kind, _MANY, same=True)


@pytest.mark.long
@pytest.mark.parametrize("kind", STRATEGIES)
def test_other_random_expressions_in_every_run(judge: Judge, kind: str) -> None:
    judged(judge, kind, 6 * _MANY, same=False)


# Without parentheses, where sqlglot and the server might group in different ways.
_GROUPED = (
    "ti + su * 2 - i DIV 3 % 5",
    "i DIV 3 * 2 + ti",
    "i * 2 DIV 3",
    "ti % 7 * 2",
    "i MOD 5",
    "-ti + su",
    "su - -ti",
    "NOT ti = 1 OR su > 3 AND i < 4",
    "ti OR su XOR i AND su",
    "ti XOR su OR i",
    "NOT ti XOR su",
    "NOT ti AND su",
    "!ti",
    "ti BETWEEN i - 3 AND i + 3 AND su",
    "ti + 1 < su * 2",
    "ti && su",
    "ti IS NULL OR su IS NOT NULL",
    "NOT ti IN (1, 2)",
    "ti NOT IN (1, NULL)",
    "CASE WHEN ti > 0 THEN 'p' WHEN ti = 0 THEN 'z' ELSE 'n' END",
    "CASE ti WHEN 0 THEN 1 END",
)
# Each was wrong once, or is easily wrong.
_ODD = (
    "f = 0.1",
    "f = 1e0 * 0.1",
    "f > 0",
    "g = 9007199254740992",
    "b = 9223372036854775807",
    "b < ub",
    "ub = -1",
    "i <> ub",
    "iu - 1",
    "-iu",
    "ABS(b)",
    "b DIV -1",
    "b % -1",
    "iu % 7 - 9",
    "ti % 7 - 9",
    "CAST(ub AS SIGNED)",
    "CAST(ti AS UNSIGNED)",
    "CAST(dl AS DECIMAL(5,1))",
    "CAST(9.995 AS DECIMAL(3,2))",
    "CAST(d AS SIGNED)",
    "CAST(y AS SIGNED)",
    "CAST(dt AS DATE)",
    "CAST(dt AS CHAR)",
    "CAST(ds AS CHAR)",
    "CAST(ts AS CHAR)",
    "CAST(dy AS DATETIME)",
    "-(CAST(0.5 AS DOUBLE)) + d",
    "LENGTH(CONCAT(a, t))",
    "COALESCE(ub, 0)",
    "COALESCE(ub, 0) + 1",
    "COALESCE(ub, 0) - 9223372036854775807",
    "IF(su > 9, ub, -1) * 2",
    "CASE WHEN ti IS NULL THEN su ELSE ti END * 3 - COALESCE(ti, su)",
    "CHAR_LENGTH(t)",
    "OCTET_LENGTH(t)",
    "MID(t, 2, 1)",
    "SUBSTRING(t, -2, 1)",
    "SUBSTRING(t, -2)",
    "SUBSTRING(t, 0, 1)",
    "SUBSTRING(t FROM 2 FOR 1)",
    "ti + COALESCE(su, su)",
    "NULLIF(ti, 0)",
    "IFNULL(d, ti)",
    "tb = 'a'",
    "tn = 'a'",
    "tb < 'a'",
    "tb <= 'a'",
    "tb > 'a'",
    "'a' < tb",
    "tn < 'a'",
    "t COLLATE utf8mb4_bin IN ('a', 'b')",
    "CAST(t AS BINARY) = 'é'",
    "BINARY t < 'b'",
    "e = 'paid'",
    "e > 'new'",
    "s = 'x,z'",
    "l = 'é'",
    "bl = 'a'",
    "bi = X'ff00ff'",
    "dy = '2026-01-31'",
    "dy < dt",
    "dt = '2026-01-31 00:00:00'",
    "dt >= '2026-01-31'",
    "ds < ts",
    "ts > '2024-02-29 12:30:45'",
    "tm >= '00:00:00.25'",
    "dt BETWEEN '1969-01-01' AND '1970-01-01'",
    "tb LIKE 'a%'",
    "tb LIKE '_'",
    "tb NOT LIKE '%|%' ESCAPE '|'",
    "bl LIKE '_'",
    "i <=> NULL",
    "ti <=> su",
    "i IS NOT TRUE",
    "(ti > 0) IS FALSE",
    "TRUE",
    "ti > 0",
    "ti IN (1, 2, 0.0)",
    "dt IS NULL",
    "ti = NULL",
    "NOT NULL",
    "IF(su > 9, ti + su, 0)",
    "su > 1000 AND ti + su > 0",
    "su < 1000 OR ti + su > 0",
    "COALESCE(su, ti + su)",
    "ti IN (ti, su)",
    "CASE ti WHEN ti THEN 0 WHEN ti + su THEN 1 END",
)


EXPRESSIONS = (*_GROUPED, *_ODD)


def test_expressions(judge: Judge, subtests: pytest.Subtests) -> None:
    for expression in EXPRESSIONS:
        with subtests.test(expression):
            assert judge.judged(expression), "it is refused"


CONDITIONS = (
    "ti",
    "ti > 0 AND su",
    "d <> 0",
    "g <> 0",
    "NOT i",
    "NULL",
    "tb = 'a'",
    "dt > '2000-01-01'",
    "ti IN (0, NULL)",
    "bt",
    "ub > b",
)


def test_conditions(judge: Judge, subtests: pytest.Subtests) -> None:
    """A row for which a condition is NULL is not taken."""
    for condition in CONDITIONS:
        with subtests.test(condition):
            assert judge.taken(condition) == judge.told(condition)


def test_the_judge_tells_a_difference(judge: Judge) -> None:
    """The rows tell texts that differ in case, in spaces at the end, or in characters below the space."""
    assert judge.told("t = 'a'") != judge.taken("t COLLATE utf8mb4_bin = 'a'")
    if judge.collations["tn"] == judge.collations["tb"]:
        return  # MySQL 8.0 has no collation of code points without spaces
    assert judge.told("tb = 'a'") != judge.told("tn = 'a'")
    assert judge.told("tb < 'a'") != judge.told("tn < 'a'")
