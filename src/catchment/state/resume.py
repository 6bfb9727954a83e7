"""Where a feed goes on: state store and lake compared, before anything is written (DESIGN 5)."""

from collections.abc import Collection
from dataclasses import dataclass

from catchment.config import Feed
from catchment.model.epoch import Commit, EpochRow, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import NEW_FEED, SinkError, SinkRestored, StateError
from catchment.state.store import Store


@dataclass(frozen=True)
class Fresh:
    """Nothing was ever committed."""


@dataclass(frozen=True)
class Continue:
    """Go on after `manifest`. `apply`: it must be applied (again) first. `undo`: tables at the lake may hold
    parts of another epoch, whose manifest is lost; put them back to this row's versions."""

    manifest: Manifest
    apply: bool
    undo: EpochRow | None = None


def decide(
    feed: str,
    stored: Manifest | None,
    committed: Commit | None,
    lake: EpochRow | None,
    digests: Collection[str],
) -> Fresh | Continue:
    """Compare the newest manifest and commit of the store with the newest epoch of the lake. `digests`: those that the
    stored manifest may have in its commit (`Store.digests`).

    Raises SinkRestored when the lake is behind by more than the one epoch that a crash can leave, StateError
    when the two tell different stories.
    """
    if stored is None:
        return Fresh() if lake is None else Continue(lake.manifest, apply=False, undo=lake)
    if lake is None:
        if committed is None:
            return Continue(stored, apply=True)
        raise SinkRestored(
            f"feed {feed}: the state store has committed epoch {epoch_text(committed.epoch)}, but the lake holds no "
            f"epoch: it was removed or restored; put it back, or start {NEW_FEED} to copy again"
        )
    at = lake.manifest.epoch
    if at == stored.epoch:
        # Of an epoch that the store took up from the lake, its commit alone has the digest.
        known = {committed.digest} if committed is not None and committed.epoch == at else digests
        if lake.commit.digest not in known:
            raise StateError(
                f"feed {feed}: state store and lake hold different epochs {epoch_text(at)}; one of them belongs to "
                "another feed of that name"
            )
        # The row is the proof that the epoch is applied, with or without its commit record in the store. A store
        # restored to just this epoch knows nothing of a later one that was being applied.
        return Continue(stored, apply=False, undo=lake)
    if at > stored.epoch:
        return Continue(lake.manifest, apply=False, undo=lake)
    if at == stored.previous and (committed is None or committed.epoch <= at):
        # The store may have been away, and a run without it may have left parts of an epoch of its own.
        return Continue(stored, apply=True, undo=lake)
    raise SinkRestored(
        f"feed {feed}: the lake stands at epoch {epoch_text(at)}, the state store at "
        f"{epoch_text(stored.epoch)}: the lake was "
        "restored from an older copy; "
        "restore the newer lake, or remove the state store to go on from the lake's epoch"
    )


def must_have_lake(feed: Feed, store: Store, lake: EpochRow | None) -> None:
    """Raise SinkError when the store has committed epochs and the lake, whose newest epoch is given, holds none."""
    if lake is None and store.newest()[2] is not None:
        raise SinkError(
            f"feed {feed.name}: the lake {feed.sink.path} holds no epoch, and the state store has committed some; "
            "correct sink.path, or mount the lake"
        )
