"""Many hostile events, one small dump each: for long runs, also under a sanitizer.

    python -m tests.layers.wire.recordings build/recordings
    dev/sanitized python -m tests.layers.wire.fuzz_run build/recordings INPUTS [SEED [PROCESSES]]

Each input is a seed (seeds.py) with its target changed, one with a definition that does not fit, or a changed answer
to SELECT or PREPARE (fuzz_answers.py). The report says of each event type, each type of column in the log and in an
answer, each kind of JSON and each event in a payload how many inputs were decoded and how many ended in which error.
"""

import pickle
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Final

from catchment.model.errors import CorruptLog, CorruptResult
from tests.layers.wire import fuzz_answers
from tests.layers.wire.fuzz_log import ALTERED_UNSEEN, DECODED, descriptions_kept, draw
from tests.layers.wire.recorded import Answer, Recording
from tests.layers.wire.seeds import DECLARED, Seed, seeds
from tests.layers.wire.small_tables import ALTERED

Outcome = Counter[tuple[str, str]]

BATCH: Final = 10_000
PROCESSES: Final = 2
SECONDS: Final = 1  # of CPU for one input
GROWTH_KIB: Final = 1 << 20  # of memory in one process; a sanitizer keeps freed memory for a while


def memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(found: list[Seed | Answer], inputs: int, seed: int) -> Outcome:
    """Inputs by the name of their seed and what became of them. Raises AssertionError with the number of an
    input that is not survived; the same arguments repeat it."""
    by_name: dict[str, list[Seed | Answer]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    names = sorted(by_name)
    logged = [one for one in found if isinstance(one, Seed)]
    others = [definition for one in logged for definition in one.definitions.values()]
    outcome: Outcome = Counter()
    rng = random.Random(seed)
    before = memory_kib()
    with descriptions_kept(logged):
        for number in range(inputs):
            chosen = rng.choice(by_name[names[number % len(names)]])
            drawn = draw(rng, chosen, others) if isinstance(chosen, Seed) else fuzz_answers.draw(rng, chosen)
            began = time.process_time()
            try:
                ended = drawn.ended(rng)
            except BaseException as error:
                raise AssertionError(f"input {seed}/{number}, {drawn}") from error
            assert time.process_time() - began < SECONDS, f"input {seed}/{number}, {drawn} took long"
            outcome[chosen.name, ended] += 1
    assert memory_kib() - before < GROWTH_KIB, f"inputs of seed {seed} took much memory"
    return outcome


def report(outcome: Outcome) -> str:
    names = {name for name, _ in outcome}
    lines = []
    for name in sorted(names, key=lambda name: re.sub(r"\d+", lambda digits: digits[0].zfill(3), name)):
        counts = ", ".join(f"{ended} {n}" for (of, ended), n in sorted(outcome.items()) if of == name)
        lines.append(f"  {name:45} {counts}")
    return "\n".join(lines)


def unreached(outcome: Outcome) -> list[str]:
    """Names of which nothing was decoded, or nothing ended in CorruptLog or CorruptResult, or, where there are
    definitions, in a table that was altered unseen."""
    names = {name for name, _ in outcome}
    missing = {n for n in names if not outcome[n, DECODED]}
    missing |= {
        n for n in names if not any(outcome[n, error.__name__] for error in (CorruptLog, CorruptResult))
    }
    declared = {n for n in names if n.startswith((DECLARED, ALTERED))}
    return sorted(missing | {n for n in declared if not outcome[n, ALTERED_UNSEEN]})


def all_seeds(made: list[Recording]) -> list[Seed | Answer]:
    return [*seeds(made), *fuzz_answers.answers(made)]


def outcomes(found: list[Seed | Answer], batches: range, processes: int) -> Iterator[tuple[int, Outcome]]:
    """Batches as they end, each with the seed of its number."""
    if processes == 1:
        for batch in batches:
            yield batch, run(found, BATCH, batch)
        return
    with ProcessPoolExecutor(processes) as pool:
        waiting = {pool.submit(partial(run, found, BATCH), batch): batch for batch in batches}
        for done in as_completed(list(waiting)):
            try:
                yield waiting[done], done.result()
            except BaseException:
                print(f"batch {waiting[done]} was not survived, or one of those beside it", flush=True)
                pool.shutdown(cancel_futures=True)
                raise


def main(path: str, inputs: int, seed: int = 1, processes: int = PROCESSES) -> None:
    """Batches with seeds from `seed` on; says now and then how far it is, then all outcomes."""
    found = all_seeds(pickle.loads(Path(path).read_bytes()))
    began = time.monotonic()
    outcome: Outcome = Counter()
    for batch, ended in outcomes(found, range(seed, seed + -(-inputs // BATCH)), processes):
        outcome.update(ended)
        if batch % 10 == 0:
            print(f"{outcome.total()} inputs survived in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{outcome.total()} inputs survived in {time.monotonic() - began:.0f} s")
    print(report(outcome))
    missing = unreached(outcome)
    if missing:
        sys.exit(f"not reached, too few inputs: {', '.join(missing)}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
