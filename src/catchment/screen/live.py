"""A run on a terminal, kept current while it lasts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from catchment.screen.display import screen
from catchment.screen.seen import Seen

_REFRESHES_A_SECOND = 4


@dataclass(frozen=True)
class Screen:
    """What rich draws: `seen` gives what is to be shown now."""

    seen: Callable[[], Seen]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # The cursor stands on a line of its own below.
        yield Text("\n").join(screen(self.seen(), options.max_width, console.height - 1))


@contextmanager
def shown(console: Console, seen: Callable[[], Seen]) -> Iterator[None]:
    """Show it while the block runs."""
    with Live(Screen(seen), console=console, refresh_per_second=_REFRESHES_A_SECOND):
        yield
