"""`catchment` with small limits: joins of few files, and large files of few rows, so that both are due all the time.

python -m tests.promises.exact.impatient run feed.yaml
"""

import sys
from collections.abc import Callable

from catchment.cli.main import execute
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.plain import due

FAN = 3
LARGE_ROWS = 60
CHECKPOINT_INTERVAL = 7


def be_impatient(put: Callable[[object, str, object], None] = setattr) -> None:
    """Lower the limits of this process; `put` as `MonkeyPatch.setattr`."""
    put(due, "FAN", FAN)
    put(due, "LARGE_ROWS", LARGE_ROWS)
    put(checkpoint, "INTERVAL", CHECKPOINT_INTERVAL)


if __name__ == "__main__":
    be_impatient()
    sys.exit(execute(sys.argv[1:]))
