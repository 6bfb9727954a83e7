"""The `catchment` command: finds the subcommand, and turns errors into one clear line and an exit code."""

import atexit
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType

import click

from catchment.cli.output import EXIT_INTERRUPTED
from catchment.cli.start import VERSION
from catchment.model.errors import CatchmentError

# Each command lies in a module of its own, imported when it is called: `status` need not wait for Spark to
# load.
_COMMANDS = {
    "doctor": "catchment.cli.doctor:doctor",
    "run": "catchment.cli.run:run",
    "status": "catchment.cli.status:status",
    "verify": "catchment.cli.verify:verify_command",
    "dump": "catchment.cli.dump:dump_group",
    "tables": "catchment.cli.dump:tables_command",
    "apply": "catchment.cli.dump:apply_command",
    "set": "catchment.cli.dump:set_command",
    "stop": "catchment.cli.dump:stop_command",
    "adopt": "catchment.cli.adopt:adopt",
    "settle": "catchment.cli.settle:settle",
    "erase": "catchment.cli.erase:erase_command",
    "upgrade": "catchment.cli.upgrade:upgrade",
    "epochs": "catchment.cli.epochs:epochs_command",
    "views": "catchment.cli.views:views_command",
    "tail": "catchment.cli.tail:tail_command",
    "serve": "catchment.cli.serve:serve_command",
    "demo": "catchment.cli.demo:demo",
}

_STOPPING = (signal.SIGINT, signal.SIGTERM)

_EXIT_CODES = """\b
Exit codes:
  0    done                             6    the state store, or another runner
  1    verify found a difference        7    Spark lost its work or cannot start
  2    the feed file or an argument     8    no room for temporary files
  3    a shard refuses or is unusable   9    an Avro file is whole; begin the next
  4    bytes of a shard make no sense   70   a fault of this program
  5    the lake refuses or is wrong     130  stopped by Ctrl-C or SIGTERM
"""


class _Commands(click.Group):
    """A group whose commands are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=_Commands, epilog=_EXIT_CODES)
@click.version_option(message=VERSION)
def cli() -> None:
    """Copy a sharded MySQL or MariaDB into a lakehouse, exact at every epoch, while it stays in use."""


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. A command returns its own code, or None for 0."""
    try:
        result = cli.main(list(arguments), prog_name="catchment", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _stopped()
    except Exception as error:
        # A signal to all processes of a service ends Java, too, and what breaks by that hides the interrupt.
        return _stopped() if signal.getsignal(signal.SIGTERM) is _on_second_signal else _failed(error)
    return result if isinstance(result, int) else 0


def _stopped() -> int:
    click.echo("catchment: stopped; the same command goes on from here", err=True)
    return EXIT_INTERRUPTED


def _failed(error: Exception) -> int:
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, CatchmentError):
        click.echo(f"catchment: {error}", err=True)
        return error.exit_code
    # The one place for our own faults: exit code 1 would mean "verify found a difference".
    traceback.print_exception(error)
    click.echo("catchment: a fault of this program; please report the lines above", err=True)
    return CatchmentError.exit_code


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Let the command end as soon as it can; `run` and `demo` have handlers of their own."""
    for stopping in _STOPPING:
        signal.signal(stopping, _on_second_signal)
    logging.disable()  # Py4J logs a traceback of the call to Java that it was in
    raise KeyboardInterrupt


def _on_second_signal(number: int, frame: FrameType | None) -> None:
    """End at once: a thread may wait for a shard that is silent."""
    os.write(2, b"catchment: stopped again, ended at once\n")
    os._exit(EXIT_INTERRUPTED)


def _too_late_to_stop() -> None:
    """Keep the exit code. Before Python has ended it gives signals back their default, which is death by the signal."""
    for stopping in _STOPPING:
        signal.signal(stopping, signal.SIG_IGN)


def main() -> None:
    """Entry point of the `catchment` script."""
    atexit.register(_too_late_to_stop)  # it is called last of all that is registered
    for stopping in _STOPPING:
        if signal.getsignal(stopping) is not signal.SIG_IGN:  # as of a job in the background
            signal.signal(stopping, _on_signal)
    sys.exit(execute(sys.argv[1:]))


if __name__ == "__main__":
    main()
