"""A state store on a server that loses connections, refuses them, or does not say whether it has committed."""

import signal
from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import INTERRUPTED
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.world.patience import until
from tests.world.proxy import Proxy, query_begins

# Of one epoch: the plan's, the manifest's and the commit's.
COMMITS = 3


@pytest.fixture
def server(pair: dict[str, PrivateServer]) -> PrivateServer:
    """The server that has the store beside the rows of a shard: only the way to the store breaks."""
    return pair["80-"]


@pytest.fixture
def store(server: PrivateServer) -> Iterator[Proxy]:
    """The way to the store."""
    server.sql(
        "CREATE DATABASE keeper",
        "CREATE USER keeper@'127.0.0.1' IDENTIFIED BY 'pw'",
        "GRANT ALL ON keeper.* TO keeper@'127.0.0.1'",
    )
    with Proxy(server.host, server.port) as proxy:
        yield proxy
    server.sql("DROP DATABASE keeper", "DROP USER keeper@'127.0.0.1'")


@pytest.fixture
def life(pair: dict[str, PrivateServer], live: MakeLife, store: Proxy) -> Life:
    """A feed with its state store there."""
    life = live(pair)
    life.describe(state=f"mysql+pymysql://keeper:pw@{store.host}:{store.port}/keeper")
    life.load(30)
    return life


@pytest.mark.promise("a run waits for a state store that does not answer, busy or at rest, and goes on")
def test_a_state_store_that_is_cut_off_and_comes_back(
    life: Life, store: Proxy, pair: dict[str, PrivateServer]
) -> None:
    run = life.told()
    run.wait_for("caught_up")
    for reset in (False, True):  # at rest
        _away(store, reset=reset)
        run.wait_for("away", what="the state store", state="away")
        store.refusing = False
        run.wait_for("away", what="the state store", state="back")
    with written(life):
        run.wait_for("epoch")
        _away(store, reset=True)
        run.wait_for("away", what="the state store", state="away")
        store.refusing = False
        run.wait_for("away", what="the state store", state="back")
        cuts = store.cuts
        store.cut_after(1, after=query_begins("COMMIT"), times=COMMITS)  # done, and nobody hears of it
        until("answers to COMMIT are lost", lambda: store.cuts == cuts + COMMITS)
        run.wait_for("epoch")
    run.wait_for_log({name: server.log_end() for name, server in pair.items()})
    _away(store, reset=True)
    run.wait_for("away", what="the state store", state="away")
    run.process.send_signal(signal.SIGTERM)
    assert run.ended().code == INTERRUPTED
    store.refusing = False
    assert life.run() == 0
    life.must_be_exact()


def _away(store: Proxy, *, reset: bool) -> None:
    store.refusing = True
    store.cut(reset=reset)
