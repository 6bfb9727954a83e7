"""Hostile bytes in every kind of event of MariaDB and MySQL (see fuzz_run.py): decoded, or one named error."""

import os
import resource

import pytest

from catchment.model.errors import CorruptLog
from tests.wire.events import HEADER, joined, kind_of
from tests.wire.fuzz import placed, survives
from tests.wire.fuzz_run import pieces, run
from tests.wire.recordings import Recording, recordings

MARIADB = {2, 4, 15, 16, 19, 23, 24, 25, 38, 161, 162, 163, 166, 167, 168}
MYSQL_80 = {2, 4, 13, 15, 16, 19, 29, 30, 31, 32, 33, 35, 38, 39}
INPUTS = int(os.environ.get("CATCHMENT_FUZZ_INPUTS", "1000000"))


@pytest.fixture(scope="module")
def made() -> list[Recording]:
    return recordings()


def types_of(made: list[Recording]) -> set[int]:
    expected = set(MARIADB)
    for name, _, _ in made:
        if "MySQL" in name:
            expected |= MYSQL_80
        if "(9" in name:
            expected |= {40, 42}
    return expected


def test_changed_events(made: list[Recording]) -> None:
    outcome = run(made, inputs=6000, seed=1)
    for kind in types_of(made):
        assert outcome[kind, "CorruptLog"] > 20, kind
    assert {kind for kind, ended in outcome if ended == ""} >= types_of(made) - {4, 166, 167, 168}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20  # KiB


def test_cut_at_every_byte(made: list[Recording]) -> None:
    """One event of each type and server, sealed again; those longer than 600 bytes at as many places."""
    seen = set()
    for recording in made:
        for events, place in pieces(recording):
            for i, event in enumerate(events):
                kind = recording[0], kind_of(event)
                if kind in seen or len(event) < HEADER + 8:
                    continue
                seen.add(kind)
                for kept in range(HEADER, len(event) - 4, 1 + len(event) // 600):
                    short = placed(event[:kept] + event[-4:], len(event))
                    ended = survives(joined([*events[:i], short, *events[i + 1 :]]), place, "full", kept)
                    assert ended in ("", CorruptLog.__name__, "Unsupported", "CutMissed"), (kind, kept)
    assert {kind for _, kind in seen} >= types_of(made) - {4}


@pytest.mark.long
@pytest.mark.timeout(40_000)
def test_many_changed_events(made: list[Recording]) -> None:
    """CATCHMENT_FUZZ_INPUTS inputs; under a sanitizer as fuzz_run.py says."""
    outcome = run(made, INPUTS, seed=2)
    assert all(outcome[kind, "CorruptLog"] > INPUTS // 1000 for kind in types_of(made))
