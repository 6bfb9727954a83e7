"""How commands show orders and what a run answered."""

from collections.abc import Iterable

from catchment.model.errors import StateError
from catchment.model.order import Kept


def must_be_taken(kept: Iterable[Kept]) -> None:
    """Raise StateError where a run refused one."""
    refused = [str(one.number) for one in kept if one.answer is not None and not one.answer.done]
    if refused:
        raise StateError(f"order {', '.join(refused)} is refused")


def order_lines(kept: Iterable[Kept]) -> Iterable[str]:
    """A line for each order, with its answer if it has one."""
    for one in kept:
        if one.answer is None:
            said = "queued; a run carries it out"
        else:
            said = f"{'done' if one.answer.done else 'refused'}: {one.answer.said}"
        yield f"order {one.number}, {one.order}: {said}"
