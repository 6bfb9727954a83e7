"""The same on other servers, so that a filter need not know which it has."""

from collections.abc import Iterator

import pytest

from tests.layers.serve.rules.conftest import judging
from tests.layers.serve.rules.judge import Judge
from tests.layers.serve.rules.test_judged import EXPRESSIONS, STRATEGIES, judged

pytestmark = pytest.mark.wide


@pytest.fixture(scope="module", params=["mariadb_11_server", "mysql_97_server", "mysql_server"])
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """A judge on another server."""
    with judging(request.getfixturevalue(request.param)) as found:
        yield found


@pytest.mark.parametrize("kind", STRATEGIES)
def test_random_expressions(judge: Judge, kind: str) -> None:
    judged(judge, kind, 500, same=True)


def test_expressions(judge: Judge, subtests: pytest.Subtests) -> None:
    for expression in EXPRESSIONS:
        with subtests.test(expression):
            assert judge.judged(expression), "it is refused"
