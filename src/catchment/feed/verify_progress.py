"""How far a verification has come, kept so that one of the same tables and sample goes on there."""

from catchment import world
from catchment.feed.verdict import Compared, Verdict
from catchment.model.choice import Choice
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from catchment.rewind.compare import Differences
from catchment.state.verifications import Scope, ScopeTable, Stood, TableFound, Verifications

# It is written so often at most.
SAVE_SECONDS = 1.0


class Progress:
    """One verification. `kept`: where it is kept, None: nowhere. `again`: begin from the start, whatever is kept."""

    def __init__(self, kept: Verifications | None, *, again: bool = False) -> None:
        self._kept, self._again = kept, again
        self._scope: Scope | None = None
        self._saved_at = world.steady_seconds() - SAVE_SECONDS

    def begun(self, scope: Scope, compared: Compared, verdict: Verdict) -> Compared:
        """How far it is compared already; `verdict` then has what was found there. Of a feed that still copies nothing
        is kept: what there is to compare grows. Raises StateError."""
        if self._kept is None or verdict.partial:
            return compared
        self._scope = scope
        stood = None if self._again else self._kept.load(scope)
        if stood is None or stood.compared.keys() != compared.keys():
            return compared
        for one in stood.found:
            verdict.rows[one.table] = one.rows
            verdict.found[one.table] = Differences(one.missing, one.extra, one.changed, one.named)
            if one.unproven:
                verdict.unproven[one.table] = one.unproven
        verdict.differing = list(stood.differing)
        verdict.parts = stood.parts
        verdict.epochs = (stood.epoch, verdict.epochs[1])
        verdict.resumed = sum(verdict.rows.values())
        return dict(stood.compared)

    def advanced(self, compared: Compared, verdict: Verdict) -> None:
        """Keep how far it has come. Raises StateError."""
        now = world.steady_seconds()
        if self._kept is None or self._scope is None or now - self._saved_at < SAVE_SECONDS:
            return
        self._saved_at = now
        found = tuple(_found(table, verdict) for table in verdict.rows)
        differing = tuple(verdict.differing)
        self._kept.save(Stood(self._scope, verdict.epochs[0], compared, found, differing, verdict.parts))

    def completed(self) -> None:
        """Keep nothing any more. Raises StateError."""
        if self._kept is not None and self._scope is not None:
            self._kept.clear()


NOWHERE = Progress(None)


def scope_of(manifest: Manifest, choice: Choice) -> Scope:
    """What is compared of an epoch's tables."""
    chosen = (shape for shape in manifest.shapes if choice.takes(shape.table))
    tables = tuple(ScopeTable(one.table, one.key, one.generation) for one in chosen)
    return Scope(tables, choice.sample, choice.portion)


def _found(table: TableId, verdict: Verdict) -> TableFound:
    of, unproven = verdict.found[table], verdict.unproven.get(table, 0)
    return TableFound(table, verdict.rows[table], of.missing, of.extra, of.changed, of.named, unproven)
