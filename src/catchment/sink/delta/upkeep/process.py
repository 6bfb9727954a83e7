"""The upkeep of a lake as a process of its own: settles the tables, joins files, trims the tails, and cleans up.

It takes orders, one on each line, until its runner closes its end. So it starts once a run, and remembers what it has
read of the logs. A runner that dies leaves it with its last order, which it carries out. It brings tables to committed
epochs only, so it needs no lease. The runner gives it a fence, which keeps it from writing once a later one has come.
"""

import logging
import os
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
import pyarrow as pa

from catchment.model.errors import CatchmentError, LeaseLost
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder

NICENESS = 5


class Outcome(msgspec.Struct, frozen=True):
    """How an order ended; `said` names the error where `code`, an exit code, is not 0. `warned`: what the runner's log
    is to have."""

    code: int
    said: str = ""
    warned: tuple[str, ...] = ()


class _Warnings(logging.Handler):
    """Keeps warnings until somebody takes them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._held: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self._held.append(record.getMessage())

    def taken(self) -> tuple[str, ...]:
        """Those since the last call."""
        held, self._held = self._held, []
        return tuple(held)


def start(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start the process; it writes to `said` what goes wrong. Ctrl-C at a terminal is for its runner alone. Lists of
    processes show the lake's `root`.

    It may outlive the runner, so it holds nothing of the runner's: whoever reads a command's output sees its end.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "catchment.sink.delta.upkeep.process", root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        cwd=Path.cwd(),
        process_group=0,
    )


def main() -> None:
    """Entry of the process."""
    os.nice(NICENESS)
    keepers: dict[tuple[str, str], Keeper] = {}
    warnings = _Warnings()
    logging.getLogger("catchment").addHandler(warnings)
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=UpkeepOrder)
        keeper = keepers.setdefault((order.root, order.feed), Keeper(order.root, order.feed))
        outcome = _outcome(keeper, order)
        answer = msgspec.json.encode(msgspec.structs.replace(outcome, warned=warnings.taken()))
        pa.default_memory_pool().release_unused()
        with suppress(BrokenPipeError):  # the runner has ended
            os.write(sys.stdout.fileno(), answer + b"\n")


def _outcome(keeper: Keeper, order: UpkeepOrder) -> Outcome:
    try:
        keeper.carry_out(order)
    except LeaseLost as error:
        return Outcome(error.exit_code)  # a later run has come, and settles
    except CatchmentError as error:
        return Outcome(error.exit_code, str(error))
    except Exception as error:
        traceback.print_exc()
        return Outcome(CatchmentError.exit_code, f"{type(error).__name__}: {error}")
    return Outcome(0)


if __name__ == "__main__":
    main()
