"""The `catchment` script: an installation for readers has no commands, and says what to install for them."""

import sys

from catchment.model.errors import NotInstalled
from catchment.model.version import LAKE_LAYOUT, __version__

VERSION = f"catchment {__version__}, lake layout {LAKE_LAYOUT}"


def main() -> None:
    """Entry point of the `catchment` script."""
    try:
        from catchment.cli import main as command
    except ModuleNotFoundError as fault:
        if sys.argv[1:] == ["--version"]:
            print(VERSION)
            return
        print(
            f"catchment: the command needs pip install 'catchment[local]', or 'catchment[feed]' for "
            f"feeds on Spark ({fault.name} is missing)",
            file=sys.stderr,
        )
        sys.exit(NotInstalled.exit_code)
    command.main()
