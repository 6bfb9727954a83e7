"""The `catchment` command: finds the subcommand, and turns errors into one clear line and an exit code."""

import atexit
import gc
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

import click

from catchment.cli.log import CommandLog
from catchment.cli.output import EXIT_INTERRUPTED
from catchment.cli.signals import STOPPING, Heard
from catchment.cli.start import VERSION
from catchment.model.errors import CatchmentError
from catchment.model.extras import needing

# Each command lies in a module of its own, imported when it is called: `status` need not wait for Spark to
# load. What `--help` says of a command stands here as well, since it is asked of all commands at once.
_COMMANDS = {
    "doctor": ("catchment.cli.doctor:doctor", "Check shards, tables, lake and state store; write nothing."),
    "run": ("catchment.cli.run:run", "Copy the chosen tables and follow their changes until Ctrl-C."),
    "status": ("catchment.cli.status:status", "Show epoch, lag, cut, copy progress, how the last run ended."),
    "verify": ("catchment.cli.verify:verify_command", "Compare every copied row with its source; mend it."),
    "dump": ("catchment.cli.dump:dump_group", "Pause, resume and restart the copying of tables."),
    "tables": ("catchment.cli.dump:tables_command", "Show where every table of a feed stands."),
    "apply": ("catchment.cli.dump:apply_command", "Have a run use the feed file as it is now."),
    "set": ("catchment.cli.dump:set_command", "Change settings of the copy while a feed runs."),
    "stop": ("catchment.cli.dump:stop_command", "End the run of a feed, in order, wherever it runs."),
    "adopt": ("catchment.cli.adopt:adopt", "Go on with another server for a shard."),
    "settle": ("catchment.cli.settle:settle", "Bring every table of the lake to the newest epoch now."),
    "erase": ("catchment.cli.erase:erase_command", "Erase the rows of some keys from all of a lake table."),
    "upgrade": ("catchment.cli.upgrade:upgrade", "Bring an earlier version's lake to this one's layout."),
    "epochs": ("catchment.cli.epochs:epochs_command", "List the newest committed epochs of a lake."),
    "views": ("catchment.cli.views:views_command", "Print SQL with a DuckDB view of every table."),
    "tail": ("catchment.cli.tail:tail_command", "Print rows and their changes as they come."),
    "serve": ("catchment.cli.serve:serve_command", "Serve streams of rows and their changes over gRPC."),
    "demo": ("catchment.cli.demo:demo", "See it work on two private MariaDB shards; takes a minute."),
}

_EXIT_CODES = """\b
Exit codes:
  0    done                             6    the state store, or another runner
  1    verify found a difference        7    Spark lost its work or cannot start
  2    the feed file or an argument     8    no room for temporary files
  3    a shard refuses or is unusable   9    an Avro file is whole; begin the next
  4    bytes of a shard make no sense   10   caught up, but for tables that it names
  5    the lake refuses or is wrong     11   verify could not compare all of it
                                        70   a fault of this program
                                        130  stopped by Ctrl-C or SIGTERM
"""


class _Commands(click.Group):
    """A group whose commands are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _COMMANDS.items()])


@click.group(cls=_Commands, epilog=_EXIT_CODES)
@click.version_option(message=VERSION)
def cli() -> None:
    """Copy a sharded MySQL or MariaDB into a lakehouse, exact at every epoch, while it stays in use."""
    if not gc.isenabled():  # the modules of the command are loaded, and nothing of them is ever garbage
        gc.freeze()
        gc.enable()


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. A command returns its own code, or None for 0."""
    command = next((argument for argument in arguments if argument in _COMMANDS), "")
    with CommandLog() as log:
        try:
            with needing(f"catchment {command}", "serve" if command == "serve" else "local"):
                result = cli.main(list(arguments), prog_name="catchment", standalone_mode=False, obj=log)
        except (click.Abort, KeyboardInterrupt):
            return _stopped(log)
        except Exception as error:
            # A signal to all processes of a service ends Java, too, and what breaks by that hides the interrupt.
            return _stopped(log) if _signals.were_heard else _failed(error, log)
        return result if isinstance(result, int) else 0


def _stopped(log: CommandLog) -> int:
    log.say("stopped; the same command goes on from here")
    return EXIT_INTERRUPTED


def _failed(error: Exception, log: CommandLog) -> int:
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, CatchmentError):
        log.say(str(error), error=error)
        return error.exit_code
    # The one place for our own faults: exit code 1 would mean "verify found a difference".
    log.report(error)
    return CatchmentError.exit_code


class _Signals:
    """What Ctrl-C and SIGTERM do to this process; `run` and `demo` have handlers of their own."""

    def __init__(self) -> None:
        self.were_heard = False

    def install(self) -> None:
        """The first one lets the command end as soon as it can, a second one ends it at once."""
        heard = Heard()
        threading.Thread(target=_end_at_the_second, args=[heard], name="interrupts", daemon=True).start()
        heard.listen()
        atexit.register(self._too_late_to_stop)  # it is called last of all that is registered
        for stopping in STOPPING:
            if signal.getsignal(stopping) is not signal.SIG_IGN:  # as of a job in the background
                signal.signal(stopping, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.were_heard:  # at the second one another thread ends the process
            self.were_heard = True
            logging.disable()  # Py4J logs a traceback of the call to Java that it was in
            raise KeyboardInterrupt

    def _too_late_to_stop(self) -> None:
        """Keep the exit code. Before Python has ended it gives signals back their default, death by the signal."""
        for stopping in STOPPING:
            signal.signal(stopping, signal.SIG_IGN)


def _end_at_the_second(heard: Heard) -> None:
    """End the process then: a thread of it may wait for a shard that is silent."""
    for count, _ in enumerate(heard.numbers(), 1):
        if count > 1:
            os.write(2, b"catchment: stopped again, ended at once\n")
            os._exit(EXIT_INTERRUPTED)


_signals = _Signals()


def main() -> None:
    """Entry point of the `catchment` script."""
    gc.disable()  # to look for garbage takes a fifth of the time in which modules load, and there is none
    _signals.install()
    sys.exit(execute(sys.argv[1:]))


if __name__ == "__main__":
    main()
