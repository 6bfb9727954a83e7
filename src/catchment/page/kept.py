"""What the state store tells of a run, for a page: read in a thread of its own, when somebody asks, and not often."""

from dataclasses import dataclass

from catchment import world
from catchment.model.errors import CatchmentError
from catchment.state.store import Store
from catchment.watch.status import Status, read_status

REFRESH_SECONDS = 2.0
_FIRST_SECONDS = 1.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Told:
    """The newest status, None before the first, and why there is no newer one."""

    status: Status | None = None
    fault: str = ""


class Kept:
    """The status of a feed. However many ask, the store is read once in REFRESH_SECONDS. A store that is away holds up
    nobody. A page that nobody looks at costs nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told = Told()
        self._wanted = world.event()
        self._first = world.event()
        self._stopping = world.event()
        self._thread = world.thread("page status", self._run)
        self._thread.start()

    def newest(self) -> Told:
        """What was read last. Whoever asks first waits for it, up to a second."""
        self._wanted.set()
        self._first.wait(_FIRST_SECONDS)
        return self._told

    def stop(self) -> None:
        """Read no more."""
        self._stopping.set()
        self._wanted.set()
        self._thread.join(_END_SECONDS)  # a store that is away may take longer

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait()
            self._wanted.clear()
            if not self._stopping.is_set():
                self._read()
                self._first.set()
                self._stopping.wait(REFRESH_SECONDS)

    def _read(self) -> None:
        try:
            self._told = Told(read_status(self._store))
        except CatchmentError as error:
            self._told = Told(self._told.status, str(error))
