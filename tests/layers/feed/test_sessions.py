"""A run takes its least of all servers at once or nothing, gives back between turns, and asks the store seldom."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from catchment.config import Feed
from catchment.feed.sessions import LOOK_SECONDS, Sessions
from catchment.model.errors import StoppedWaiting
from catchment.model.sessions import Held
from catchment.state.lease import hold
from catchment.state.sessions import Claims, claims_beside
from catchment.state.store import Store
from catchment.watch.report import Observer
from tests.layers.config.test_file import feed_of
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.worlds import SetClocks, put

CEILING = 7
LEAST = 3
MOST = 6  # of a feed with two groups of chunks


def feed(directory: Path, name: str, hosts: tuple[str, ...]) -> Feed:
    shards = "".join(f"    - {{name: {host}, host: {host}, user: u, password: p}}\n" for host in hosts)
    return feed_of(
        directory,
        f"name: {name}\nsource:\n  keyspace: shop\n  sessions_max: {CEILING}\n  shards:\n{shards}"
        "tables: [shop.*]\nsink: {path: lake}\nstate: state.db\n",
    )


class Run:
    """What holds sessions as a run does."""

    def __init__(self, directory: Path, name: str, hosts: tuple[str, ...], stack: ExitStack) -> None:
        described = feed(directory, name, hosts)
        self.store = Store.open(described.state.get_secret_value(), name)
        stack.callback(self.store.close)
        lease = stack.enter_context(hold(self.store))
        self.stop = threading.Event()
        self.said: list[str] = []
        self.told: list[Held] = []
        observer = Observer(doing=self.said.append, held=self.told.append)
        self.sessions = Sessions(described, CEILING, self.store, lease, self.stop, observer)
        self._begin: threading.Thread | None = None
        self.error: BaseException | None = None

    def begin_beside(self) -> None:
        def begin() -> None:
            try:
                self.sessions.begin()
            except BaseException as error:
                self.error = error

        self._begin = threading.Thread(target=begin, daemon=True)
        self._begin.start()

    def await_begun(self) -> None:
        assert self._begin is not None
        self._begin.join(PATIENCE_SECONDS)
        assert not self._begin.is_alive()

    @property
    def held(self) -> list[int]:
        """As the store has it, by server."""
        with self.store.database.snapshot() as connection:
            claims = claims_beside(connection, self.store.feed)
        return [one.held for one in claims if one.feed == self.store.feed]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    with ExitStack() as stack:
        yield lambda name, *hosts: Run(tmp_path, name, hosts, stack)


def wait(holds: Callable[[], object]) -> None:
    until("what the test waits for", holds)


def test_whoever_waits_holds_nothing_on_any_server(run: Callable[..., Run]) -> None:
    x, y, z, w = run("x", "a"), run("y", "b"), run("z", "a", "b"), run("w", "a")
    for one in (x, y):
        one.sessions.begin()
        one.sessions.turn(idle=False, groups=2)
        assert one.held == [MOST]
    z.begin_beside()
    wait(lambda: z.said)
    assert z.said == [
        f"waits for sessions: {LEAST} of {CEILING} on a:3306 (feed x has {MOST}), "
        f"{LEAST} of {CEILING} on b:3306 (feed y has {MOST})"
    ]
    assert z.held == [0, 0]
    assert z.sessions.now.sessions == {}
    assert z.sessions.now.waits_since_us
    x.sessions.close()
    w.sessions.begin()  # it came later, and is held up by nobody
    assert (w.held, z.held) == ([LEAST], [0, 0])
    y.sessions.close()
    z.await_begun()
    assert (w.held, z.held) == ([LEAST], [LEAST, LEAST])
    assert z.sessions.now.sessions == {"a": LEAST, "b": LEAST}
    assert not z.sessions.now.waits_since_us
    assert (z.sessions.room("a"), z.sessions.groups("a")) == (2, 1)


def test_two_that_came_crosswise_do_not_wait_for_one_another(run: Callable[..., Run]) -> None:
    """Each least fits once on each server."""
    runs = [run("x", "a", "b"), run("y", "b", "a"), run("z", "a", "b")]
    for one in runs:
        one.begin_beside()
    wait(lambda: sorted(one.held for one in runs) == [[0, 0], [LEAST, LEAST], [LEAST, LEAST]])
    first = next(one for one in runs if one.held == [LEAST, LEAST])
    first.sessions.close()
    for one in runs:
        one.await_begun()
        assert one.error is None


def test_a_run_gives_back_what_others_wait_for(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = put(monkeypatch, SetClocks())
    x, y = run("x", "a"), run("y", "a")
    x.sessions.begin()
    assert x.sessions.now.sessions == {"a": LEAST}
    x.sessions.turn(idle=False, groups=2)
    assert (x.sessions.now.sessions, x.sessions.groups("a")) == ({"a": MOST}, 2)
    y.begin_beside()
    wait(lambda: y.said)
    clocks.steady = time.monotonic() + LOOK_SECONDS
    x.sessions.turn(idle=False, groups=2)
    assert (x.sessions.now.sessions, x.sessions.groups("a")) == ({"a": LEAST + 1}, 1)
    clocks.steady = None
    y.await_begun()
    assert (x.held, y.held) == ([LEAST + 1], [LEAST])
    # When all rows are copied, the other may have more.
    x.sessions.turn(idle=True, groups=2)
    y.sessions.turn(idle=False, groups=2)
    assert (x.held, y.held) == ([LEAST], [LEAST + 1])


def test_the_store_is_asked_once_a_second_and_told_only_of_what_changes(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    now, change = Claims.now, Claims.change

    def told(what: str, of: Callable[..., object]) -> Callable[..., object]:
        def asking(*arguments: object) -> object:
            asked.append(what)
            return of(*arguments)

        return asking

    monkeypatch.setattr(Claims, "now", told("now", now))
    monkeypatch.setattr(Claims, "change", told("change", change))
    x = run("x", "a")
    x.sessions.begin()
    assert asked == ["change"]
    clocks = put(monkeypatch, SetClocks(steady=time.monotonic()))
    for _ in range(5):
        x.sessions.turn(idle=True, groups=2)
    assert asked == ["change"]
    assert clocks.steady is not None
    clocks.steady += LOOK_SECONDS
    for _ in range(5):
        x.sessions.turn(idle=True, groups=2)
    assert asked == ["change", "now"]
    for _ in range(5):
        x.sessions.turn(idle=False, groups=2)
    assert asked == ["change", "now", "now", "change"]


def test_a_run_that_lost_its_claims_waits_for_its_turn(run: Callable[..., Run]) -> None:
    x, y = run("x", "a"), run("y", "a")
    x.sessions.begin()
    x.sessions.close()  # as another run does for one that it takes for dead
    y.sessions.begin()
    y.sessions.turn(idle=False, groups=2)
    x.stop.set()
    with pytest.raises(
        StoppedWaiting, match=f"stopped while it waits for sessions: {LEAST} of {CEILING} on a:3306"
    ):
        x.sessions.turn(idle=False, groups=2)
    x.stop.clear()
    y.sessions.turn(idle=True, groups=2)
    x.sessions.turn(idle=True, groups=1)
    assert (x.held, y.held) == ([LEAST], [LEAST])
