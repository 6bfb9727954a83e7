"""Where a run goes on whose shard has lost its log and cannot begin again, or cannot be looked at."""

from typing import Any

import pytest
from msgspec.structs import replace

from catchment.feed import lost_logs, taken_up
from catchment.feed.lost_logs import Looked, LostLog
from catchment.feed.taken_up import TakenUp
from catchment.model.errors import ConnectionLost, LogLost, Purged, SourceError
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table_state import TableState
from tests.layers.epoch.test_obey import SHARDS, manifest

STANDING = manifest(TableState.FOLLOWING)
ILL = SHARDS[0]
ENDPOINTS = {shard: Endpoint(shard, "nowhere", 1, "catchment", "") for shard in SHARDS}


def taken(*, bears: bool) -> TakenUp:
    return TakenUp(STANDING, STANDING.epoch, {}, bears=bears)


def purged() -> LogLost:
    met = Purged(f"shard {ILL}: its log was deleted")
    met.shard = ILL
    return met


@pytest.fixture
def begins(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors that keep a shard with a lost log from beginning again; the last one first."""
    errors: list[Exception] = []
    at = replace(STANDING.cut.shards[ILL].position, at=LogOffset("binlog.000900", 4))

    def begun(endpoint: Endpoint, standing: Any) -> Any:
        if errors:
            raise errors[-1]
        return at

    lost = {ILL: LostLog("its log was deleted")}
    monkeypatch.setattr(taken_up, "looked_at", lambda *_: Looked({}, lost, {}))
    for module in (lost_logs, taken_up):
        monkeypatch.setattr(module, "begun", begun)
    return errors


def test_a_shard_that_cannot_begin_again_holds_up_itself(begins: list[Exception]) -> None:
    begins.append(SourceError(f"shard {ILL}: its newest log file cannot be read"))
    after = taken(bears=True).again(STANDING, STANDING.epoch, ENDPOINTS, purged())
    assert after.first is None
    assert after.standing == STANDING
    assert list(after.unready) == [ILL]
    with pytest.raises(SourceError, match="newest log file"):
        after.unready[ILL]()
    begins.clear()
    after.unready[ILL]()
    again = after.again(STANDING, STANDING.epoch, ENDPOINTS, purged())
    assert again.first is not None
    assert again.positions[ILL].at == LogOffset("binlog.000900", 4)
    assert not again.unready


def test_a_run_that_is_to_end_says_why_it_cannot(begins: list[Exception]) -> None:
    begins.append(SourceError(f"shard {ILL}: its newest log file cannot be read"))
    with pytest.raises(SourceError, match="newest log file"):
        taken(bears=False).again(STANDING, STANDING.epoch, ENDPOINTS, purged())


@pytest.mark.parametrize("bears", [True, False])
def test_a_shard_that_went_away_since_is_looked_at_later(
    monkeypatch: pytest.MonkeyPatch, bears: bool
) -> None:
    """Its log was lost, and now nobody answers: that passes by itself."""
    looked = Looked({}, {}, {ILL: ConnectionLost("it does not answer")})

    def away(*_: object) -> Looked:
        return looked

    monkeypatch.setattr(taken_up, "looked_at", away)
    monkeypatch.setattr(lost_logs, "looked_at", away)
    after = taken(bears=bears).again(STANDING, STANDING.epoch, ENDPOINTS, purged())
    assert after.first is None
    with pytest.raises(ConnectionLost):
        after.unready[ILL]()
