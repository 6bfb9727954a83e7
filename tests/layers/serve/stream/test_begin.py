"""The first cut of a stream, where a table is altered while it is taken."""

from typing import Any

import pytest

from catchment.model.errors import CutMissed
from catchment.model.source import Endpoint
from catchment.serve.stream import begin
from catchment.serve.stream.tables import Chosen

ENDPOINT = Endpoint("ks/-", "h", 3306, "u", "p")


@pytest.mark.parametrize(("altered", "begins"), [(0, True), (1, True), (4, True), (5, False)])
def test_an_alter_that_ends_meanwhile_does_not_end_the_stream(
    monkeypatch: pytest.MonkeyPatch, altered: int, begins: bool
) -> None:
    times: list[int] = []

    class Found:
        state = "a state"

    def origin_of(*args: Any, **named: Any) -> Found:
        times.append(len(times))
        if len(times) <= altered:
            raise CutMissed(
                "shard ks/-, ks.t: the table was altered while the first cut was taken; begin again"
            )
        return Found()

    monkeypatch.setattr(begin, "origin_of", origin_of)
    if begins:
        found: Any = begin._origin(ENDPOINT, Chosen(), copies=True)
        assert found == "a state"
        assert len(times) == altered + 1
    else:
        with pytest.raises(CutMissed, match="altered while the first cut was taken"):
            begin._origin(ENDPOINT, Chosen(), copies=True)
