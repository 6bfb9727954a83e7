"""The upkeep of a lake as a process of its own: settles the tables, joins files, trims the tails, and cleans up.

The runner starts it, and may end before it. It imports little, to start fast. It brings tables to committed epochs
only, so it needs no lease. The runner gives it a fence, which keeps it from writing once a later runner has come.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import msgspec

from catchment.model.errors import CatchmentError, LeaseLost
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder

NICENESS = 5


def start(order: UpkeepOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start the process; it writes to `said` what goes wrong. Ctrl-C at a terminal is for its runner alone.

    It may outlive the runner, so it holds nothing of the runner's: whoever reads a command's output sees its end.
    """
    text = msgspec.json.encode(order).decode()
    return subprocess.Popen(
        [sys.executable, "-m", "catchment.sink.delta.upkeep.process", text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        cwd=Path.cwd(),
        process_group=0,
    )


def main() -> int:
    """Entry of the process; its exit code is that of the error."""
    os.nice(NICENESS)
    try:
        order = msgspec.json.decode(sys.argv[1], type=UpkeepOrder)
        Keeper(order.root, order.feed).carry_out(order)
    except LeaseLost as error:
        return error.exit_code  # a later run has come, and settles
    except CatchmentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
