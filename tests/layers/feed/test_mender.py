"""Orders to mend that cannot be carried out now wait, hold up nobody, and are refused in the end; none ends the run."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from catchment.epoch.work import Failed, Output
from catchment.feed import mender as module
from catchment.feed.applier import Applier
from catchment.feed.commands import NOBODY, Commands
from catchment.feed.comparisons import Comparisons
from catchment.feed.mender import Mender
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.epoch import DataFile, Manifest, Part
from catchment.model.errors import CatchmentError, ConnectionLost, ProgramFault, SinkAway
from catchment.model.order import Action, Order
from catchment.model.position import LogOffset
from catchment.model.retries import TIMES_MAX
from catchment.model.table_state import TableState
from catchment.readers.verify import VerifyReceipt
from catchment.rewind.compare import Differences
from catchment.state import orders
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.epoch.test_obey import NOW, T, manifest

FILE = DataFile("f", 1, 3, Part.CHANGES, "")


class Answering:
    """An engine whose tasks fail by an error, or come to a receipt; or that breaks itself."""

    def __init__(self, answer: CatchmentError | VerifyReceipt) -> None:
        self.answer = answer
        self.asked = 0

    def check(self) -> None: ...

    def each(self, work: Any, tasks: Sequence[Any]) -> list[Failed | VerifyReceipt]:
        self.asked += len(tasks)
        answer = self.answer
        if isinstance(answer, ProgramFault):
            raise answer
        return [Failed("-80", answer) if isinstance(answer, CatchmentError) else answer for _ in tasks]


class Mending:
    """A mender of a feed whose first shard has something to mend."""

    def __init__(
        self, store: Store, fence: int, standing: Manifest, answer: CatchmentError | VerifyReceipt
    ) -> None:
        self.store, self.standing, self.engine = store, standing, Answering(answer)
        chunks = (Chunk("-80", T, None, None, last=True),)
        self.number = orders.give(store, Order(Action.MEND, "ada", NOW, T, "-80", chunks=chunks))
        self.commands = Commands(store, fence, threading.Event(), NOBODY)
        self.away: SinkAway | None = None
        sink = SimpleNamespace(newest=self._newest, complete=lambda epoch, outputs: {T: [FILE]})
        lease = SimpleNamespace(check=lambda: None, fence=fence)
        applier = Applier(store, cast(Any, lease), cast(Any, sink), threading.Event())
        comparisons = cast(Comparisons, SimpleNamespace(mending=lambda *_, **__: "a task"))
        self.mender = Mender(comparisons, cast(Any, self.engine), applier, self.commands, 2)

    def _newest(self) -> Any:
        if self.away is not None:
            raise self.away
        return SimpleNamespace(manifest=self.standing)

    def turn(self) -> str:
        """One turn of a loop; what is said of the order."""
        self.commands.look()
        assert self.mender.due()
        assert self.mender.next(self.standing) is None
        return self.said

    @property
    def said(self) -> str:
        """What is said of the order; nothing while it is open."""
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


def test_a_lake_that_is_away_is_waited_for_by_the_loop(store: Store) -> None:
    """However often it does not answer: no try counts against the order, or ends the run."""
    with hold(store) as lease:
        mending = Mending(store, lease.fence, sealed(FOLLOWING), ConnectionLost("no"))
        mending.commands.look()
        mending.away = SinkAway("no answer")
        for _ in range(TIMES_MAX + 2):
            with pytest.raises(SinkAway):
                mending.mender.next(mending.standing)
        mending.away = None
        assert mending.mender.next(mending.standing) is None
        assert mending.engine.asked == 1


def test_a_fault_of_the_program_refuses_the_order_and_not_the_run(store: Store) -> None:
    with hold(store) as lease:
        mending = Mending(store, lease.fence, sealed(FOLLOWING), ProgramFault("a task broke"))
        assert "could not be compared: a task broke" in mending.turn()


def test_an_order_is_answered_when_the_epoch_stands_that_mends(store: Store) -> None:
    """A run that dies before leaves it to the next one."""
    output = Output(T, Part.CHANGES, FILE, 1, 0)
    receipt = VerifyReceipt("-80", {}, {T: 9}, {T: Differences(missing=1)}, (), outputs=(output,))
    standing = sealed(FOLLOWING)
    with hold(store) as lease:
        mending = Mending(store, lease.fence, standing, receipt)
        mending.commands.look()
        made = mending.mender.next(standing)
        assert made is not None
        assert (made.previous, made.changes) == (standing.epoch, 1)
        assert not mending.mender.due(), "it is carried out once"
        mending.commands.answer(standing)
        assert mending.said == ""
    with hold(store) as lease:
        mending = Mending(store, lease.fence, standing, receipt)
        mending.commands.look()
        assert len(mending.commands.mends) == 2, "the one before is open"
        made = mending.mender.next(standing)
        assert made is not None
        mending.commands.answer(made)
        assert "mended as of epoch" in "".join(
            kept.answer.said for kept in map(partial(orders.find, store), (1, 2)) if kept and kept.answer
        )
