"""What keeps a table out of a feed is that table's own trouble; what every table needs is nobody's in particular."""

from pathlib import Path
from typing import Any, cast

import pytest

from catchment.feed import asked as module
from catchment.feed.born import Births
from catchment.feed.newcomers import Newcomers
from catchment.model.errors import (
    CatchmentError,
    ConnectionLost,
    CutMissed,
    LeaseLost,
    SinkAway,
    SinkError,
    StateAway,
)
from catchment.model.table_state import TableState
from catchment.sink.port import Sink
from tests.layers.epoch.test_obey import manifest
from tests.layers.feed.test_sessions import feed

STANDING = manifest(TableState.STALE)


def newcomers(directory: Path, monkeypatch: pytest.MonkeyPatch, error: CatchmentError) -> Newcomers:
    """A stale table waits to enter again, and the first look at it fails."""

    def refused(*_: object) -> None:
        raise error

    monkeypatch.setattr(module, "connect", refused)
    endpoints = dict.fromkeys(STANDING.cut.shards, cast(Any, None))
    return Newcomers(
        feed(directory, "shop", ("a",)), endpoints, cast(Sink, None), lambda: (), cast(Births, None)
    )


@pytest.mark.parametrize("error", [CutMissed("later"), ConnectionLost("away"), SinkError("not free")])
def test_its_own_trouble_keeps_a_table_out_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: CatchmentError
) -> None:
    assert newcomers(tmp_path, monkeypatch, error).next(STANDING) is None
    assert [f"does not enter the feed yet: {error}" in line for line in caplog.messages] == [True]


@pytest.mark.parametrize("error", [SinkAway("no answer"), StateAway("no answer"), LeaseLost("another runs")])
def test_what_every_table_needs_is_nobodys_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: CatchmentError
) -> None:
    """Each of a thousand tables would wait for the lake, and nobody would say that it is away."""
    with pytest.raises(type(error)):
        newcomers(tmp_path, monkeypatch, error).next(STANDING)
    assert not caplog.messages
