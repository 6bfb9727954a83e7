"""The moves between a table's states: every state has some, and every state can be reached."""

from catchment.model.table_state import MOVES, TableState


def test_every_state_has_its_moves_and_can_be_reached() -> None:
    assert MOVES.keys() == set(TableState)
    reached = {state for moves in MOVES.values() for state in moves.values()}
    assert reached == set(TableState) - {TableState.WAITING}
