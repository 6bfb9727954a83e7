"""What SELECTs returned for keys that the log changed in front of the epoch, compared with the images in the log.

A verification must not take such a row from the log alone: a session with `sql_log_bin=0` may have changed it since,
and on a server at rest nothing else would ever show it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catchment.model.image import DELETED, GROUP, OP, SEQ, SIDE, UNCHECKED, UPDATE
from catchment.rewind.states import AFTER
from catchment.wire.keys import keys

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Explained:
    """`states`: without those that an unlogged change has replaced, where the SELECTed row counts. `unproven`: how many
    keys a SELECT returned as they were before a change in the log: the change was not visible yet, or was undone
    without a log."""

    states: pa.Table
    unproven: int


def explained(
    rows: pa.Table, images: pa.Table, states: pa.Table, key: tuple[str, ...], boundary: int
) -> Explained:
    """Compare SELECTed rows with the images of their keys.

    `rows`: what the SELECTs returned, one row a key. `images`: all images of the log that was read, in commit order,
    with GROUP, SEQ and SIDE. `states`: of each touched key of the SELECTed ranges its state at the epoch, with DELETED.
    `boundary`: ordinal of the first group beyond the epoch. A key that was changed beyond the epoch is left as it is,
    for its SELECT may have seen any of that.
    """
    if states.num_rows == 0:
        return Explained(states, 0)
    mine = keys.KeySet(keys.encode(states, key)).find(keys.encode(images, key))
    images, mine = images.filter(pa.array(mine >= 0)), mine[mine >= 0]
    changed_later = np.zeros(states.num_rows, dtype=bool)
    changed_later[mine[images.column(GROUP).to_numpy() >= boundary]] = True
    at = keys.KeySet(keys.encode(rows, key)).find(keys.encode(states, key))
    selected = at >= 0
    seen = np.zeros(states.num_rows, dtype=np.uint64)
    seen[selected] = _hashes(rows, rows.schema)[at[selected]]
    deleted = states.column(DELETED).to_numpy()
    same = np.where(deleted, ~selected, selected & (_hashes(states, rows.schema) == seen))
    open_ = ~same & ~changed_later
    if not open_.any():
        return Explained(states, 0)
    as_before = np.zeros(states.num_rows, dtype=bool)
    as_before[mine[(_hashes(images, rows.schema) == seen[mine]) & selected[mine]]] = True
    as_before |= ~selected & _was_absent(images, mine, states.num_rows)
    unlogged = open_ & ~as_before
    return Explained(states.filter(pa.array(~unlogged)), int((open_ & as_before).sum()))


def _hashes(rows: pa.Table, schema: pa.Schema) -> npt.NDArray[np.uint64]:
    return keys.hash_rows(rows.select(schema.names).cast(schema), schema.names)


def _was_absent(images: pa.Table, of: npt.NDArray[Any], count: int) -> _Mask:
    """Which keys had no row before one of their images. The two images of an UPDATE have successive SEQ, and are of two
    keys where it changed the key."""
    order = np.argsort(of, kind="stable")
    key, seq = of[order], images.column(SEQ).to_numpy()[order]
    after = images.column(SIDE).to_numpy()[order] == AFTER
    updated = images.column(OP).to_numpy()[order] & ~np.uint8(UNCHECKED) == UPDATE
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = updated[1:] & (key[1:] == key[:-1]) & (seq[1:] == seq[:-1] + 1)
    absent = np.zeros(count, dtype=bool)
    absent[key[after & ~follows]] = True
    return absent
