"""The screen of a run, for any size of terminal: summary first, then what is wrong, then tables still being copied.

Pure: what was seen goes in, lines come out. At most `height` of them, so that the terminal never cuts the summary off.
"""

from rich.text import Text

from catchment.model.progress import THROUGH
from catchment.screen.seen import Copying, Seen, copied, to_go
from catchment.screen.until import briefly, clock, until

BAR_WIDTH = 20
NAME_WIDTH_MAX = 32
WRONG_LINES_MAX = 6
_FULL, _HALF, _EMPTY = "━", "╸", "─"


def screen(seen: Seen, width: int, height: int) -> list[Text]:
    """The lines to show, none wider than `width`; as many tables as there is room for, the largest rest first."""
    lines = _summary(seen)
    lines += _wrong((*seen.wrong, *seen.waiting), width)
    room = max(height - len(lines), 0)
    waiting = sorted(seen.copying, key=lambda copy: -copy.left)
    shown = waiting if len(waiting) <= room else waiting[: max(room - 1, 0)]
    names = min(max((len(copy.table) for copy in shown), default=0), NAME_WIDTH_MAX)
    lines += [_bar(copy, names) for copy in shown]
    if room and len(shown) < len(waiting):
        lines.append(Text(f"  and {len(waiting) - len(shown):,} more tables", style="dim"))
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines[:height]


def _summary(seen: Seen) -> list[Text]:
    if not seen.epoch:
        return [Text(f"{seen.feed}: {seen.doing} ({clock(seen.doing_seconds)})", style="bold")]
    state = "copying and following" if seen.copying else "following"
    lines = [
        Text(f"{seen.feed}: {state}   lag {seen.lag_seconds:.2f} s   epoch {seen.epoch}", style="bold"),
        Text(
            f"  changes  {seen.changes:,} in {seen.epochs:,} epochs, {seen.change_rate:,.0f} a second"
            f"   cut window {seen.window_ms:.1f} ms{'   settling' if seen.settling else ''}"
        ),
    ]
    if seen.tables:
        lines.append(Text(f"  copied   {copied(seen)}"))
    if seen.copying:
        lines.append(Text(f"  to go    {to_go(seen)}"))
    if seen.log != THROUGH:
        lines.append(Text(f"  log      behind, caught up in {until(seen.log)}"))
    if seen.keys:
        lines.append(Text(f"  {seen.keys}", style="dim"))
    return lines


def _wrong(wrong: tuple[str, ...], width: int) -> list[Text]:
    """What is wrong, each as far as two lines of the terminal hold it."""
    lines: list[Text] = []
    for number, reason in enumerate(wrong):
        wrapped = _wrapped(f"! {reason}", width)
        if len(lines) + len(wrapped) > WRONG_LINES_MAX - (number + 1 < len(wrong)):
            lines.append(Text(f"! and {len(wrong) - number} more: catchment status", style="yellow"))
            break
        lines += [Text(line, style="yellow") for line in wrapped]
    return lines


def _wrapped(text: str, width: int, lines: int = 2) -> list[str]:
    wrapped: list[str] = []
    while text and len(wrapped) < lines:
        end = len(text) if len(text) <= width else text.rfind(" ", 1, width + 1)
        end = width if end <= 0 else end
        wrapped.append(text[:end])
        text = text[end:].lstrip()
        text = f"  {text}" if text else ""
    if text:
        wrapped[-1] = wrapped[-1][: width - 1].rstrip() + "…"
    return wrapped


def _bar(copy: Copying, names: int) -> Text:
    expected = max(copy.expected or 0, copy.rows, 1)
    name = copy.table if len(copy.table) <= names else copy.table[: names - 1] + "…"
    halves = int(2 * BAR_WIDTH * copy.rows / expected) if copy.expected is not None else 0
    full, half = divmod(halves, 2)
    line = Text(f"  {name:<{names}} ")
    line.append(_FULL * full + _HALF * half, style="green")
    line.append(_EMPTY * (BAR_WIDTH - full - half), style="dim")
    rate = "?" if copy.rate is None else f"{copy.rate:,.0f}"
    if copy.expected is None:
        return line.append(f"    ? {copy.rows:>13,} {rate:>9}/s {briefly(copy.until):>8}")
    return line.append(f" {copy.rows / expected:4.0%} {expected:>13,} {rate:>9}/s {briefly(copy.until):>8}")
