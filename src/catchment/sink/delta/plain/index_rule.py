"""Whether to look keys up in a data file by its side file, and when one is made. Pure."""

import msgspec

from catchment.sink.delta.plain.due import LARGE_ROWS


class Rule(msgspec.Struct, frozen=True):
    """`rows`: the least of a data file. `share`: from one key among so many rows on it is scanned. `scans`, or
    `scans_of_integers` where keys begin with one: so many cost about what making a side file does."""

    rows: int = LARGE_ROWS
    share: int = 16
    scans: int = 2
    scans_of_integers: int = 4

    def serves(self, rows: int, wanted: int) -> bool:
        """Whether so many keys are found in a file of so many rows sooner by a side file."""
        return rows >= self.rows and wanted * self.share < rows

    def pays(self, scans: int, *, integers: bool) -> bool:
        """Whether a side file is made after so many scans of one file that it would have served.

        Whoever cannot know what comes next rents until that has cost as much as to buy: twice the least, at most.
        """
        return scans >= (self.scans_of_integers if integers else self.scans)


BY_COST = Rule()
