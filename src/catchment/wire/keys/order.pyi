import numpy as np
import numpy.typing as npt

from catchment.wire.keys.keys import Keys

def last_in_order(keys: Keys) -> npt.NDArray[np.int64]:
    """Row numbers in order of key: of every distinct key, the last row that has it."""
