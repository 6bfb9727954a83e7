"""Hostile bytes in every kind of event, column and JSON of MariaDB and MySQL (see fuzz_run.py): decoded, or one
named error."""

import os
import pickle
import random
import shutil
import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from catchment.model.errors import CorruptLog
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.start import FirstGroup
from tests.layers.wire.events import HEADER, packet, seal
from tests.layers.wire.fuzz import placed
from tests.layers.wire.fuzz_answers import PREPARE, SELECT, HostileAnswer
from tests.layers.wire.fuzz_log import ALTERED_UNSEEN, decoded, descriptions_kept, unchanged
from tests.layers.wire.fuzz_run import all_seeds, run, unreached
from tests.layers.wire.recorded import Answer, Recording
from tests.layers.wire.recordings import PAYLOAD, recordings
from tests.layers.wire.seeds import DECLARED, TWO_FILES, Seed
from tests.layers.wire.small_groups import COLUMNS, GROUPS, WITHOUT_PLACES
from tests.layers.wire.small_tables import ALTERED, DIFFS, JSON, OF_MARIADB, OF_MYSQL, VECTOR

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[3]
INPUTS = int(os.environ.get("CATCHMENT_FUZZ_INPUTS", "10000000"))

EVENTS_OF_MARIADB = (2, 4, 5, 13, 14, 15, 16, 17, 18, 19, 23, 24, 25, 38, *range(160, 169))
EVENTS_OF_MYSQL = (2, 4, 13, 15, 16, 19, 29, 30, 31, 32, 33, 35, 38, 39)
EVENTS_OF_MYSQL_9 = (40, 42)
EVENTS_MADE_UP = (3, 9, 11, 26, 27, 28, 34, 36, 37, 41, 164, 169, 170, 171)
REFUSED = ("decoded", "CorruptLog", "Unsupported", "Undescribed", ALTERED_UNSEEN)
EVENTS_INSIDE = (2, 16, 19, 29, 30, 31, 32, 38)


@pytest.fixture(scope="module")
def made() -> list[Recording]:
    return recordings()


@pytest.fixture(scope="module")
def found(made: list[Recording]) -> list[Seed]:
    return [seed for seed in all_seeds(made) if isinstance(seed, Seed)]


@pytest.fixture(scope="module")
def answered(made: list[Recording]) -> list[Answer]:
    return [answer for answer in all_seeds(made) if isinstance(answer, Answer)]


def expected(made: list[Recording]) -> set[str]:
    """Names of seeds that there are; without a MySQL some are not."""
    servers = {recording.name.split(",")[0] for recording in made}
    of_mysql = {server for server in servers if server.startswith("MySQL")}
    names = (
        {f"event {n}" for n in EVENTS_OF_MARIADB}
        | OF_MARIADB
        | {ALTERED, PREPARE, TWO_FILES, *GROUPS, *COLUMNS}
    )
    names |= {f"{prefix}{kind}" for prefix in (DECLARED, SELECT) for kind in OF_MARIADB}
    if of_mysql:
        names |= {f"{SELECT}{kind}" for kind in (*JSON, *DIFFS)}
        names |= {f"event {n}" for n in (*EVENTS_OF_MYSQL, *EVENTS_MADE_UP)} | OF_MYSQL
    if "MariaDB 11" in servers:
        names.add(WITHOUT_PLACES)
    if "MySQL (9" in servers:
        names |= (
            {VECTOR} | {f"event {n}" for n in EVENTS_OF_MYSQL_9} | {f"inner event {n}" for n in EVENTS_INSIDE}
        )
    return names


def test_seeds(made: list[Recording], found: list[Seed]) -> None:
    """There is a seed of every name, and without changes all are decoded."""
    assert {seed.name for seed in all_seeds(made)} >= expected(made)
    for seed in found:
        assert decoded(random.Random(1), unchanged(seed)) == "decoded", seed.name


def test_heads_of_dumps(found: list[Seed]) -> None:
    """They say where the first group begins, wherever they are cut; a place before the file is refused."""
    for seed in {
        seed.place: seed for seed in found if seed.name in ("event 33", "event 42", "event 162")
    }.values():
        raw = unchanged(seed).raw
        for cut in (0, 1, len(seed.head), len(raw)):
            first = FirstGroup(checksums=True)
            first.feed(raw[:cut])
            first.feed(raw[cut:])
            assert first.at == seed.place
        early = bytearray(seed.target)
        early[13:17] = struct.pack("<I", len(early) - 1)
        with pytest.raises(CorruptLog, match=f"the head of a dump of {seed.place.file}: a group of"):
            FirstGroup(checksums=True).feed(unchanged(seed, seal(early)).raw)


def test_answers(answered: list[Answer]) -> None:
    """Without changes all are decoded."""
    for answer in answered:
        assert HostileAnswer(answer, answer.rows).ended(random.Random(1)) == "decoded", answer.name


def test_changed_bytes(made: list[Recording]) -> None:
    """Changes reach the values of every name, and its errors."""
    outcome = run(all_seeds(made), inputs=40_000, seed=1)
    assert {name for name, _ in outcome} >= expected(made)
    assert unreached(outcome) == []


def test_cut_at_every_byte(found: list[Seed]) -> None:
    """One event of each name, sealed again behind the cut."""
    rng = random.Random(2)
    with descriptions_kept(found):
        for seed in {seed.name: seed for seed in found}.values():
            for kept in range(HEADER, len(seed.target) - 4):
                short = placed(seed.target[:kept] + seed.target[-4:], len(seed.target))
                ended = decoded(rng, unchanged(seed, short))
                assert ended in REFUSED, (seed.name, kept)


def test_announced_lengths_take_no_memory(found: list[Seed]) -> None:
    """A payload announces 2 GiB, and so does an event in it."""
    seed = next((seed for seed in found if seed.name == "inner event 19"), None)
    if seed is None:
        pytest.skip("no MySQL here writes transaction payloads")
    assert seed.target[4] == PAYLOAD
    hostile = bytearray(seed.target)
    size = struct.pack("<Q", 1 << 31)
    lengths = hostile.rindex(b"\x03\x09\xfe") + 3
    hostile[lengths : lengths + 8] = size
    hostile[seed.first + 9 : seed.first + 13] = struct.pack("<I", (1 << 31) - 1000)
    decoder = LogDecoder(seed.place)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLog, match=r"unpacks to another length"):
            decoder.feed(seed.head + packet(seed.number, b"\0" + seal(hostile)))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_many_changed_events(made: list[Recording], tmp_path: Path) -> None:
    """CATCHMENT_FUZZ_INPUTS inputs under an address sanitizer."""
    if shutil.which("gcc") is None:
        pytest.skip("the address sanitizer is GCC's")
    recorded = tmp_path / "recordings"
    recorded.write_bytes(pickle.dumps(made))
    command = ["dev/sanitized", "python", "-m", "tests.layers.wire.fuzz_run", str(recorded), str(INPUTS), "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=7000, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    print(done.stdout)
