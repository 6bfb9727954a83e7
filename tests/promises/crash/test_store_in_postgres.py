"""A state store in PostgreSQL, whose server is restarted under a run."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from tests.conftest import had
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.world.servers.postgres import PrivatePostgres
from tests.world.told import ToldRun


@pytest.fixture
def postgres() -> Iterator[PrivatePostgres]:
    with had(PrivatePostgres) as server:
        yield server


@pytest.fixture
def life(pair: dict[str, PrivateServer], live: MakeLife, postgres: PrivatePostgres) -> Life:
    """A feed with its state store there."""
    life = live(pair)
    life.describe(state=postgres.store_url)
    life.load(30)
    return life


@pytest.mark.wide
@pytest.mark.promise("a run goes on when PostgreSQL, which has its state store, is restarted")
def test_a_run_goes_on_over_restarts_of_its_store(
    life: Life, postgres: PrivatePostgres, pair: dict[str, PrivateServer]
) -> None:
    run = life.told()
    run.wait_for("caught_up")
    _restart(postgres, run)  # at rest
    with written(life):
        run.wait_for("epoch")
        for _ in range(2):
            _restart(postgres, run)
            run.wait_for("epoch")
    run.wait_for_log({name: server.log_end() for name, server in pair.items()})
    run.kill()
    assert life.run() == 0
    life.must_be_exact()


def _restart(postgres: PrivatePostgres, run: ToldRun) -> None:
    """Once the run has missed it, and until it has it again."""
    postgres.stop()
    run.wait_for("away", what="the state store", state="away")
    postgres.start()
    run.wait_for("away", what="the state store", state="back")
