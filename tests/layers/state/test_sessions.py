"""What runs claim in a state store: claims of the dead run out, those of the living stay, and two never part at
once."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import delete, insert, update

from catchment.demo.server import PrivateServer
from catchment.model.errors import LeaseLost, StateError
from catchment.model.sessions import Claim, may_hold
from catchment.state.database import lease_table, session_table
from catchment.state.lease import LEASE_SECONDS
from catchment.state.sessions import Claims, claims_beside
from catchment.state.store import Store
from tests.world.worlds import SetClocks, put

SERVER = "db1:3306"
CEILING = 8


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> SetClocks:
    return put(monkeypatch, SetClocks(steady=100.0))


class Run:
    """A run of a feed, which renews its lease when a test says so."""

    def __init__(self, url: str, feed: str, fence: int = 1) -> None:
        self.store = Store.open(url, feed)
        self.claims = Claims(self.store, fence, [SERVER])
        with self.store.database.transaction() as connection:
            connection.execute(delete(lease_table).where(lease_table.c.feed == feed))
            row = {"feed": feed, "fence": fence, "owner": "{}", "renewals": 0}
            connection.execute(insert(lease_table).values(**row))

    def renew(self) -> None:
        self._change(renewals=lease_table.c.renewals + 1)

    def release(self) -> None:
        self._change(owner="")

    def ask(self, least: int = 3, most: int = 8) -> int:
        """What it has now."""

        def decide(claims: Sequence[Claim]) -> list[Claim]:
            held = next((one.held for one in claims if one.run == self.claims.run), 0)
            mine = Claim(SERVER, *self.claims.run, held, least, most, CEILING, 0)
            others = [one for one in claims if one.run != mine.run]
            return [replace(mine, held=may_hold(mine, [*others, mine]))]

        return self.claims.change(decide)[0].held

    def _change(self, **values: object) -> None:
        with self.store.database.transaction() as connection:
            mine = lease_table.c.feed == self.store.feed
            connection.execute(update(lease_table).where(mine).values(**values))


@pytest.fixture
def pair(url: str) -> Iterator[tuple[Run, Run]]:
    a, b = Run(url, "a"), Run(url, "b")
    with closing(a.store), closing(b.store):
        yield a, b


def test_the_claims_of_a_run_that_was_killed_run_out(pair: tuple[Run, Run], clocks: SetClocks) -> None:
    a, b = pair
    assert (a.ask(), b.ask()) == (8, 0)
    assert a.ask() == 4
    assert b.ask() == 4
    assert clocks.steady is not None
    for _ in range(3):  # the living stay, however long that takes
        clocks.steady += LEASE_SECONDS * 0.9
        a.renew()
        b.renew()
        assert b.ask() == 4
    clocks.steady += LEASE_SECONDS * 0.9
    assert b.ask() == 4
    clocks.steady += LEASE_SECONDS * 0.2
    assert [one.feed for one in b.claims.now()] == ["b"]
    assert b.ask() == 8
    # It had only stood still: what it claimed is gone, and it waits until the other gives some back.
    a.renew()
    b.renew()
    assert a.claims.run not in [one.run for one in a.claims.now()]
    assert (a.ask(), b.ask(), a.ask()) == (0, 4, 4)


def test_a_run_that_ended_in_order_claims_nothing(pair: tuple[Run, Run]) -> None:
    a, b = pair
    assert (a.ask(), b.ask()) == (8, 0)
    a.claims.give_back()
    assert b.ask() == 8
    b.release()  # the store was away when it gave back
    assert a.ask() == 8


def test_the_next_run_of_a_feed_waits_for_the_one_that_was_killed(
    pair: tuple[Run, Run], url: str, clocks: SetClocks
) -> None:
    """What that had open may not have ended yet."""
    a, _ = pair
    assert a.ask() == 8
    later = Run(url, "a", fence=2)
    with closing(later.store):
        assert later.ask() == 0
        with pytest.raises(LeaseLost):
            a.ask()
        assert clocks.steady is not None
        clocks.steady += LEASE_SECONDS * 1.1
        assert later.ask() == 8
        assert [one.fence for one in claims(later)] == [2]


def claims(run: Run) -> list[Claim]:
    with run.store.database.snapshot() as connection:
        return claims_beside(connection, run.store.feed)


def test_claims_on_other_servers_are_no_business_of_a_run(pair: tuple[Run, Run], url: str) -> None:
    a, b = pair
    a.ask()
    other = Claims(b.store, 1, ["db2:3306"])
    assert other.now() == []
    assert [one.held for one in claims(a)] == [8]
    assert claims(b) == []


def part_at_once(url: str) -> None:
    """Many runs ask again and again; together they never have more than there are."""
    runs = [Run(url, f"feed{number}") for number in range(4)]
    faults: list[BaseException] = []

    def work(run: Run) -> None:
        try:
            for turn in range(12):
                run.ask(most=3 + turn % 6)
                held = [one.held for one in run.claims.now()]
                assert sum(held) <= CEILING, held
                if turn % 5 == 4:
                    run.claims.give_back()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=[run]) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        run.store.close()
    assert not faults, faults


@pytest.mark.usefixtures("clocks")
def test_many_at_once(url: str) -> None:
    part_at_once(url)


@pytest.mark.usefixtures("clocks")
def test_many_at_once_in_a_server(shard: PrivateServer) -> None:
    shard.sql("CREATE OR REPLACE DATABASE parted")
    login = shard.login("root")
    try:
        part_at_once(
            f"mysql+pymysql://root:{login['password']}@{shard.host}:{shard.port}/parted?charset=utf8mb4"
        )
    finally:
        shard.sql("DROP DATABASE parted")


def test_a_store_of_an_earlier_program_has_no_claims(pair: tuple[Run, Run]) -> None:
    a, _ = pair
    with a.store.database.transaction() as connection:
        session_table.drop(connection)
    assert claims(a) == []
    with pytest.raises(StateError):
        a.ask()
