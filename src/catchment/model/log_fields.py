"""Fields of a line of the log, for programs: `catchment run --log-format json` prints them beside the message."""

from collections.abc import Collection

from catchment.model.errors import CatchmentError

FIELDS = ("shard", "table", "tables", "scope", "error")


def about(
    *, shard: str = "", tables: Collection[object] = (), error: BaseException | None = None
) -> dict[str, object]:
    """What a line is about, as the `extra` of a logging call: the shard, the table or the number of tables, and of an
    error its kind, its shard and the smallest thing that it holds up. What is not known is left out."""
    found: dict[str, object] = {"shard": shard}
    if len(tables) == 1:
        found["table"] = str(next(iter(tables)))
    elif tables:
        found["tables"] = len(tables)
    if error is not None:
        found["error"] = type(error).__name__
    if isinstance(error, CatchmentError):
        found |= {"shard": shard or error.shard, "scope": error.scope.value}
    return {name: value for name, value in found.items() if value}
