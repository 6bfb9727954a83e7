"""What a user's own programs do to plain tables beside a feed: delta-rs and, where there is one, Spark.

None of it changes a row. Of a vacuum only what the tables' properties allow: it finds nothing to remove.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from deltalake import DeltaTable

from tests.world.delta_spark import DeltaSpark

Step = Callable[[], object]


class Maintenance:
    """Steps at random over the tables in these directories. `done`: how often each came to its end."""

    def __init__(self, directories: Sequence[Path], seed: int, spark: DeltaSpark | None = None) -> None:
        self._directories = directories
        self._rng = random.Random(seed)
        self._spark = spark
        self.done: Counter[str] = Counter()

    def beside_a_run(self) -> None:
        """One step of delta-rs that may come at any time, on a table that is there."""
        there = [one for one in self._directories if any((one / "_delta_log").glob("*.json"))]
        if there:
            steps = self._at_any_time(self._rng.choice(there))
            self._do(*self._rng.choice(sorted(steps.items())))

    def all_of(self, directory: Path) -> None:
        """Every step, while nobody else writes to the table."""
        steps = self._at_any_time(directory) | self._at_rest(directory) | self._of_spark(directory)
        for name, step in steps.items():
            self._do(name, step)

    def _do(self, name: str, step: Step) -> None:
        step()
        self.done[name] += 1

    def _at_rest(self, directory: Path) -> dict[str, Step]:
        """delta-rs 1.6.6 does not see that a file which it joins was replaced meanwhile."""
        return {
            "compact": DeltaTable(directory).optimize.compact,
            "z_order": lambda: DeltaTable(directory).optimize.z_order(["_epoch"]),
        }

    def _at_any_time(self, directory: Path) -> dict[str, Step]:
        def vacuum(*, full: bool) -> None:
            for dry_run in (True, False):
                found = DeltaTable(directory).vacuum(dry_run=dry_run, full=full)
                assert found == [], f"a vacuum removes {found}"

        return {
            "vacuum": lambda: vacuum(full=False),
            "full vacuum": lambda: vacuum(full=True),
            "checkpoint": lambda: DeltaTable(directory).create_checkpoint(),
        }

    def _of_spark(self, directory: Path) -> dict[str, Step]:
        spark, table = self._spark, f"delta.`{directory}`"
        if spark is None:
            return {}
        said = {
            "Spark's OPTIMIZE": f"OPTIMIZE {table}",
            "Spark's ZORDER": f"OPTIMIZE {table} ZORDER BY (_epoch)",
            "Spark's REORG": f"REORG TABLE {table} APPLY (PURGE)",
            "Spark's VACUUM LITE": f"VACUUM {table} LITE",
            "Spark's VACUUM": f"VACUUM {table}",
            "Spark's VACUUM DRY RUN": f"VACUUM {table} DRY RUN",
        }
        return {name: partial(spark.run, sql) for name, sql in said.items()}
