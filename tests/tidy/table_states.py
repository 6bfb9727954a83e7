"""The moves of a table's states, drawn into docs/dump.md from the table in the code.

`python -m tests.tidy.table_states` draws them again.
"""

from catchment.model.table_state import MOVES, Cause
from tests.tidy.sources import ROOT

PAGE = ROOT / "docs" / "dump.md"
BEGIN, END = "<!-- drawn by tests/tidy/table_states.py -->", "<!-- end of the drawing -->"


def drawn() -> str:
    """A line for each state, with what moves a table out of it and where to."""
    width = max(len(state.value) for state in MOVES)
    lines = []
    for state, moves in MOVES.items():
        arrows = [f"──{cause.value}──► {moves[cause].value}" for cause in Cause if cause in moves]
        if not arrows:
            lines.append(f"    {state.value}")
        for number, arrow in enumerate(arrows):
            lines.append(f"    {'' if number else state.value:{width}} {arrow}")
    return "\n".join(lines)


def page() -> str:
    """docs/dump.md with the drawing as it is now."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{drawn()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
