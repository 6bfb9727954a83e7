"""The picture of a table's states is that of the program, and no move leads nowhere."""

from catchment.model.table_state import MOVES, TableState
from tests.tidy.table_states import PAGE, page


def test_the_page_has_the_moves_of_the_program() -> None:
    assert PAGE.read_text() == page(), "python -m tests.tidy.table_states draws it again"


def test_every_state_has_its_moves_and_can_be_reached() -> None:
    assert MOVES.keys() == set(TableState)
    reached = {state for moves in MOVES.values() for state in moves.values()}
    assert reached == set(TableState) - {TableState.WAITING}
