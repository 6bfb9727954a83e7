"""What a seed turns around. What is rare in one seed is frequent in another, so that what has to come together does."""

from dataclasses import dataclass

from catchment.source.prove import WORTH_BYTES

Choice = tuple[float, ...]


@dataclass(frozen=True)
class Theme:
    """Of each, one choice is taken for a seed.

    `rotations`, `xa`, `purges`: weights of what clients and operators do, beside 80 of plain transactions. `paces`:
    seconds between two of these. `holds`, `late`: for how many a commit that is logged stays hidden, and one of XA.
    `rows`: of a table at first. `chunk_rows`, `groups`: as the feed file has them. `worth`: log worth the proof of a
    better floor. `select_seconds`: how long a SELECT takes at most. `lead`: seconds of writing before the feed begins.
    `freezes`: how likely a run stands still at a step; `standstills`: for how many seconds. `trouble`: how long things
    break. `breaks`: what takes log away that no feed has read.
    """

    rotations: Choice = (1, 4, 12)
    xa: Choice = (1, 6, 30, 80)
    purges: Choice = (0, 2, 8)
    holds: tuple[Choice, ...] = (
        (0.0, 0.0, 0.0, 0.05, 0.4, 3.0),
        (0.0, 0.02, 0.1, 0.2),
        (0.0, 0.0, 0.3, 1.0),
        (0.15, 0.2, 0.25),  # each one waits for a replica
    )
    paces: Choice = (0.05, 0.1, 0.5, 3.0)
    late: Choice = (0.0, 0.1, 0.3, 0.3, 2.0, 6.0)
    rows: tuple[int, ...] = (0, 5, 20, 45)
    chunk_rows: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    groups: tuple[int, ...] = (1, 2, 3)
    worth: tuple[int, ...] = (0, 300, WORTH_BYTES)
    select_seconds: Choice = (0.0, 0.0, 0.2, 0.8)
    lead: Choice = (0.0,)
    freezes: Choice = (0.0, 0.001, 0.006)
    standstills: Choice = (0.2, 3.0, 15.0)
    trouble: Choice = (4.0, 4.0, 8.0, 25.0)
    breaks: tuple[str, ...] = ("reset", "reset", "twice", "purge", "purge", "flush")


_USUAL = Theme()
# Each of them copies for long.
_FILES = Theme(rotations=(30,), purges=(40,), rows=(45,), chunk_rows=(2, 3), groups=(1,))
_XA = Theme(
    xa=(150,), late=(0.0, 0.3, 1.0, 6.0), rows=(20, 45), chunk_rows=(2, 3), groups=(1,), lead=(0.0, 1.0, 4.0)
)
# Files go soon after they are full, and XA transactions are open or late beside them.
PURGED = Theme(
    rotations=(30,),
    purges=(60,),
    xa=(20, 80),
    late=(0.0, 0.3, 2.0, 6.0),
    paces=(0.05, 0.5, 3.0),
    rows=(45,),
    chunk_rows=(2, 3),
    groups=(1,),
    breaks=("purge",),
)
# A file begins with a snapshot of its own, which runs ahead of what is held. No floor is proven anew while XA is open.
_HELD = Theme(
    holds=((0.6, 0.8, 1.0),),
    paces=(0.05, 0.1),
    xa=(0,),
    rotations=(60,),
    rows=(45,),
    chunk_rows=(2, 3),
    groups=(1,),
    worth=(0,),
    select_seconds=(0.5, 1.0),
)
# Just longer than a lease lasts: the first run wakes when the one that took over makes the same epoch.
_FROZEN = Theme(freezes=(0.004, 0.01), standstills=(10.5, 11.0, 11.5, 12.0, 13.0, 15.0), trouble=(60.0,))
THEMES = (_USUAL, _USUAL, _USUAL, _FILES, _XA, _HELD, _FROZEN)
