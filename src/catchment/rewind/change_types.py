"""What an image is of a change, as a change data feed names it."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.image import CHANGE, OP, SIDE, UNCHECKED, UPDATE
from catchment.rewind.states import BEFORE

INSERT, DELETE, PREIMAGE, POSTIMAGE = "insert", "delete", "update_preimage", "update_postimage"
_TYPES = pa.array([INSERT, DELETE, PREIMAGE, POSTIMAGE])
_UPDATES = pa.array([UPDATE, UPDATE + UNCHECKED], pa.uint8())


def typed(images: pa.Table, followed: npt.NDArray[np.bool_] | None) -> pa.Table:
    """The followed images with their change type. A side of a key update stands alone when the other side is not
    followed. Then it is a delete or an insert (DESIGN 4: a key update is split before any filter).
    """
    update = pc.is_in(images.column(OP), _UPDATES).to_numpy()
    before = pc.equal(images.column(SIDE), BEFORE).to_numpy()
    alone = np.zeros(len(update), dtype=bool)
    if followed is not None:
        # The sides of an update follow one another in the log, and an event is never taken in parts.
        other = np.where(before, np.roll(followed, -1), np.roll(followed, 1))
        alone = update & ~other
    kinds = np.where(before, 1, 0) + np.where(update & ~alone, 2, 0)
    # 0 insert, 1 delete, 2 after image, 3 before image
    names = pa.array(_TYPES.take(pa.array([0, 1, 3, 2])).take(pa.array(kinds)))
    images = images.append_column(CHANGE, names)
    return images if followed is None else images.filter(pa.array(followed))
