import numpy as np
import numpy.typing as npt

from catchment.wire.keys.keys import Keys

def places_of(held: Keys, wanted: Keys) -> npt.NDArray[np.int64]:
    """The rows of `held`, whose keys are in order, that have a key of `wanted`: for one of these after the other.

    Keys of `wanted` that are in order are found sooner. Where `held` is not in order, the rows may be wrong ones of it.
    Raises ValueError where its offsets lead out of its data.
    """

def is_ordered(keys: Keys) -> bool:
    """Whether no key is above the next one."""
