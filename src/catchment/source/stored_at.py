"""What is stored on a shard as of a statement in its log: the catalog, and the log up to where that was read.

The catalog is of now, the statement of then. What it leads to now it led to then, if no statement between them took any
of that away. One that adds only makes it more. A process keeps one proof for each shard, so that a backlog is read once
to its end, and not again in every epoch.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from catchment import world
from catchment.model.position import LogOffset, Server, reaches
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Effect, Stop
from catchment.schema.events import SchemaEvent, text_of
from catchment.schema.judge import ByText, judged, not_shown
from catchment.schema.reach import Objects, reached
from catchment.schema.redefined import Redefined, redefined
from catchment.schema.text import Text
from catchment.schema.verbs import Act
from catchment.source.log import read_facts
from catchment.source.objects import read_objects
from catchment.source.session import connect
from catchment.wire.log.facts import Ddl, Fact, Statement

_SHARDS_MAX = 64

_Definition = tuple[LogOffset, Redefined]


@dataclass(frozen=True, slots=True)
class _Proof:
    """`objects` as of `until`; `defining`: what was defined behind `since`, also a little behind `until`."""

    server: Server
    since: LogOffset
    until: LogOffset
    objects: Objects
    defining: tuple[_Definition, ...]


_proofs: dict[Endpoint, _Proof] = {}
# The driver reads several shards at once.
_lock = world.lock()


class StoredAt:
    """Judges the statements of the log from `start` to `at`, whose `events` these are; asks the shard when one needs
    it."""

    def __init__(
        self,
        endpoint: Endpoint,
        server: Server,
        start: LogOffset,
        at: LogOffset,
        events: Iterable[SchemaEvent],
    ) -> None:
        self._endpoint = endpoint
        self._server = server
        self._start = start
        self.at = at
        self.events = tuple(events)
        self._own: tuple[_Definition, ...] | None = None
        self._found: _Proof | None = None
        self._asked = False

    def judged(self, event: SchemaEvent, chosen: Collection[TableId]) -> Effect:
        """What a statement of the stretch did to the chosen tables, by its rows too; raises SourceError."""
        text = event.text
        did = judged(text, event.effect, chosen, None, here=event.here)
        if not isinstance(did, ByText) or did.shown or Act.NOT_KNOWN in text.kinds:
            return did
        proof = self._proof()
        did = self._by(proof, event, chosen)
        if isinstance(did, Stop) and proof.objects.lacking and not self._asked:
            self._keep(self._new())  # privileges may have been granted since the catalog was read
            did = self._by(self._proof(), event, chosen)
        return did

    def _by(self, proof: _Proof, event: SchemaEvent, chosen: Collection[TableId]) -> Effect:
        did = judged(event.text, event.effect, chosen, proof.objects, here=event.here)
        if isinstance(did, Stop):
            return did
        reach = reached(event.text.names, proof.objects)
        for at, definition in (*self._defining(), *proof.defining):
            if not reaches(event.at, at) and definition.takes_from(reach):
                return not_shown(chosen, f"a statement at {at} may have changed since what it leads to")
        return did

    def _defining(self) -> tuple[_Definition, ...]:
        if self._own is None:
            self._own = tuple(_defined((event.at, event.text) for event in self.events))
        return self._own

    def _proof(self) -> _Proof:
        """One that holds for every statement of the stretch."""
        if self._found is None:
            with _lock:
                proof = _proofs.pop(self._endpoint, None)
            if proof is None or proof.server != self._server or not reaches(self.at, proof.since):
                proof = self._new()
            elif not reaches(proof.until, self.at):
                proof = self._extended(proof)
            return self._keep(proof)
        return self._found

    def _keep(self, proof: _Proof) -> _Proof:
        self._found = proof
        with _lock:
            while len(_proofs) >= _SHARDS_MAX:
                _proofs.pop(next(iter(_proofs)))
            _proofs[self._endpoint] = proof
        return proof

    def _new(self) -> _Proof:
        """The log is read to its end before the catalog is, and what has come since behind it."""
        self._asked = True
        before = read_facts(self._endpoint, self._server, self.at, None)
        with connect(self._endpoint, self._server) as session:
            objects = Objects.of(read_objects(session), mysql=session.mysql_version is not None)
        since = read_facts(self._endpoint, self._server, before.at, None)
        meanwhile = tuple(_defined(_texts(since.facts)))
        # Of what was defined meanwhile it is not known whether the catalog has it.
        until = before.at if meanwhile else since.at
        return _Proof(self._server, self.at, until, objects, (*_defined(_texts(before.facts)), *meanwhile))

    def _extended(self, proof: _Proof) -> _Proof:
        """The same catalog as of the stretch's end, where nothing was defined since; else a new one."""
        defined = list(self._defining())
        if not reaches(proof.until, self._start):
            between = read_facts(self._endpoint, self._server, proof.until, self._start)
            defined += _defined(_texts(between.facts))
        if any(not reaches(proof.until, at) for at, _ in defined):
            return self._new()
        return replace(proof, until=self.at)


def _texts(facts: Iterable[Fact]) -> Iterator[tuple[LogOffset, Text]]:
    return ((fact.at, text_of(fact)) for fact in facts if isinstance(fact, Ddl | Statement))


def _defined(texts: Iterable[tuple[LogOffset, Text]]) -> Iterator[_Definition]:
    for at, text in texts:
        found = redefined(text)
        if found is not None:
            yield at, found


def forget() -> None:
    """Forget all proofs, as a process that has just begun."""
    _proofs.clear()
