"""Nothing in a lake grows with the epochs that it has seen: what lies there follows from its rows and its window."""

from pathlib import Path

import pytest
from msgspec.structs import asdict

from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epochs_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.thinning import needless
from tests.layers.sink.endurance import Cleaned, left, passing, questions, tail
from tests.layers.sink.model import FEED

APART = 120.0  # seconds between two epochs: the window and an hour are 60 epochs
TURN = 50
FIRST = 2_000


def what_is_there(root: Path) -> dict[str, int]:
    """What lies in a lake, and what it takes to open its tables."""
    found = {"rows of epochs": len(EpochsTable(root, FEED).numbers())}
    for directory in (tail(root), epochs_dir(root)):
        found |= {f"{directory.name} {name}": value for name, value in asdict(left(directory)).items()}
        with questions() as asked:
            assert DeltaLog(directory).newest() is not None
            found[f"{directory.name} opened"] = asked()
    return found


def must_not_grow(root: Path, epochs: int) -> None:
    """What is there after so many epochs is what was there after the first ones, but for the room of a turn."""
    with passing(epochs * APART) as clock:
        feed = Cleaned(root, clock, APART)
        feed.pass_by(FIRST, turn=TURN)
        before, remembered = what_is_there(root), feed.cleaner.remembered
        feed.pass_by(epochs - FIRST, turn=TURN)
        after = what_is_there(root)
        # Up to 31 files of the epochs table wait until they are joined.
        grown = {n: (before[n], after[n]) for n in after if after[n] > 1.3 * before[n] + 40}
        assert not grown
        assert feed.cleaner.remembered <= 1.3 * remembered


def test_a_lake_does_not_grow(tmp_path: Path) -> None:
    must_not_grow(tmp_path, 5_000)


@pytest.mark.long
def test_a_lake_does_not_grow_in_the_long_run(tmp_path: Path) -> None:
    must_not_grow(tmp_path, 200_000)


def test_a_turn_reads_what_has_come_since_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    lines_of = DeltaLog.lines_of

    def counted(log: DeltaLog, version: int) -> object:
        read.append(version)
        return lines_of(log, version)

    with passing(400 * APART) as clock:
        feed = Cleaned(tmp_path, clock, APART)
        feed.pass_by(200, turn=TURN)
        monkeypatch.setattr(DeltaLog, "lines_of", counted)
        feed.clean()
        assert read == [], "nothing has come"
        feed.pass_by(20, turn=20)
        assert len(read) == 20 + 1 + 4, "20 epochs and a trim; the rows of four"
        with questions() as asked:
            feed.clean()
            idle = asked()
        feed.pass_by(100, turn=TURN)
        with questions() as asked:
            feed.clean()
            assert asked() < idle + 10, "100 epochs have come between"


def entry(version: int) -> str:
    return f"{version:020d}.json"


def point(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def test_what_stays_of_a_log() -> None:
    entries = {entry(version) for version in range(2_000)}
    points = {point(version) for version in range(0, 2_000, 50)}
    gone = set(needless(entries | points | {"_last_checkpoint"}, floor=300, opened=1_820, kept=[50, 7]))
    assert gone & entries == {entry(version) for version in range(300) if version not in (7, 50)}
    # Of 1,800 and later ones somebody may be reading: 1,850 came after all have begun that are opening the table.
    stay = {50, 300, 500, 1_000, 1_500, *range(1_800, 2_000, 50)}
    assert points - gone == {point(version) for version in stay}


def test_the_newest_checkpoint_stays_however_old_it_is() -> None:
    names = {entry(version) for version in range(101)} | {point(50), point(100)}
    assert set(needless(names, floor=50, opened=100, kept=[])) == {entry(version) for version in range(50)}
