"""What tests cost: seconds on a quiet reference machine, recorded in costs.tsv by `make test-costs`.

They decide the order of a run (long tests first), whether slices are even, and how many tests of a change fit into
CI's budget. They decide nothing that a test asserts: a file that is out of date makes a run uneven, and no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("costs.tsv")
# What a unit without a record is taken to cost.
UNKNOWN_SECONDS = 0.5
# What costs less has no record: thousands of lines would say nothing.
RECORDED_SECONDS = 1.0


@dataclass(frozen=True)
class Costs:
    """Seconds by unit (tests/suite/tiers.py), and which units are in slices."""

    seconds: Mapping[str, float]
    wide: frozenset[str]

    def of(self, unit: str) -> float:
        """What a unit is taken to cost, in seconds."""
        return self.seconds.get(unit, UNKNOWN_SECONDS)

    @property
    def wide_units(self) -> dict[str, float]:
        """The recorded seconds of what lies in slices."""
        return {unit: self.seconds[unit] for unit in self.wide}


@cache
def recorded() -> Costs:
    """The costs in costs.tsv."""
    rows = [line.split("\t") for line in FILE.read_text().splitlines() if not line.startswith("#")]
    seconds = {unit: float(cost) for cost, _, unit in rows}
    return Costs(seconds, frozenset(unit for _, tier, unit in rows if tier == "wide"))


def write(measured: Mapping[tuple[str, str], float]) -> None:
    """Replace the records of all tiers that were measured; keys are tier and unit, values are seconds."""
    tiers = {tier for tier, _ in measured}
    kept = [row for row in FILE.read_text().splitlines() if row[0] != "#" and row.split("\t")[1] not in tiers]
    new = [
        f"{cost:.1f}\t{tier}\t{unit}" for (tier, unit), cost in measured.items() if cost >= RECORDED_SECONDS
    ]
    rows = sorted([*kept, *new], key=lambda row: row.split("\t")[1:])
    FILE.write_text("\n".join(["# seconds, tier, unit: written by `make test-costs`", *rows]) + "\n")
