"""Orders to mend that cannot be carried out now wait, hold up nobody, and are refused in the end; none ends the run."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from catchment.epoch.work import Failed
from catchment.feed import mender as module
from catchment.feed.applier import Applier
from catchment.feed.commands import NOBODY, Commands
from catchment.feed.comparisons import Comparisons
from catchment.feed.mender import Mender
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, ConnectionLost, ProgramFault
from catchment.model.order import Action, Order
from catchment.model.position import LogOffset
from catchment.model.table_state import TableState
from catchment.state import orders
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.epoch.test_obey import NOW, T, manifest


class Shaky:
    """An engine whose tasks fail by an error, or that breaks itself."""

    def __init__(self, error: CatchmentError) -> None:
        self.error = error
        self.asked = 0

    def check(self) -> None: ...

    def each(self, work: Any, tasks: Sequence[Any]) -> list[Failed]:
        self.asked += len(tasks)
        if isinstance(self.error, ProgramFault):
            raise self.error
        return [Failed("-80", self.error) for _ in tasks]


class Mending:
    """A mender of a feed whose first shard has something to mend."""

    def __init__(self, store: Store, fence: int, standing: Manifest, error: CatchmentError) -> None:
        self.store, self.standing, self.engine = store, standing, Shaky(error)
        chunks = (Chunk("-80", T, None, None, last=True),)
        self.number = orders.give(store, Order(Action.MEND, "ada", NOW, T, "-80", chunks=chunks))
        self.commands = Commands(store, fence, threading.Event(), NOBODY)
        sink = SimpleNamespace(newest=lambda: SimpleNamespace(manifest=standing))
        lease = SimpleNamespace(check=lambda: None, fence=fence)
        applier = Applier(store, cast(Any, lease), cast(Any, sink), threading.Event())
        comparisons = cast(Comparisons, SimpleNamespace(mending=lambda *_, **__: "a task"))
        self.mender = Mender(comparisons, cast(Any, self.engine), applier, self.commands, 2)

    def turn(self) -> str:
        """One turn of a loop; what is said of the order."""
        self.commands.look()
        assert self.mender.due()
        assert self.mender.next(self.standing) is None
        kept = orders.find(self.store, self.number)
        assert kept is not None
        return "" if kept.answer is None else f"{kept.answer.done}: {kept.answer.said}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/state.db", "shop")) as opened:
        yield opened


def sealed(standing: Manifest) -> Manifest:
    shards = {
        name: replace(state, sealed=LogOffset("binlog.000001", 4))
        for name, state in standing.cut.shards.items()
    }
    return replace(standing, cut=Cut(standing.epoch, standing.time_us, shards))


FOLLOWING = manifest(TableState.FOLLOWING)


@pytest.mark.parametrize(
    ("standing", "error", "asked", "why"),
    [
        (replace(sealed(FOLLOWING), absent={"-80": NOW}), ConnectionLost("no"), 0, "shard -80 is away"),
        (FOLLOWING, ConnectionLost("no"), 0, "is proven visible yet"),
        (sealed(FOLLOWING), ConnectionLost("it is gone"), 2, "could not be compared: it is gone"),
    ],
)
def test_what_hinders_may_pass_and_is_waited_for(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    standing: Manifest,
    error: ConnectionLost,
    asked: int,
    why: str,
) -> None:
    with hold(store) as lease:
        mending = Mending(store, lease.fence, standing, error)
        assert mending.turn() == ""
        monkeypatch.setattr(module, "GIVE_UP_SECONDS", 0.0)
        said = mending.turn()
        assert said.startswith("False: ")
        assert why in said
        assert mending.engine.asked == asked
        assert not mending.mender.due()


def test_a_fault_of_the_program_refuses_the_order_and_not_the_run(store: Store) -> None:
    with hold(store) as lease:
        mending = Mending(store, lease.fence, sealed(FOLLOWING), ProgramFault("a task broke"))
        assert "could not be compared: a task broke" in mending.turn()
