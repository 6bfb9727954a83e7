"""Writes docs/errors.md from the errors themselves, so that the page cannot lag behind them."""

import re
from collections.abc import Iterator
from pathlib import Path

from catchment.model import errors
from catchment.model.errors import CatchmentError, Retry, Scope

_HEAD = """# Errors

Every error is of one tree, and says what is wrong, where, and what to do. Beside its message it has three properties:

* **Its scope** is the smallest thing that it holds up. All else goes on.
* **Tried again**: whether the same work may succeed later. A run repeats it 30 times within half a minute. What does
  not answer (a shard, the state store, the lake) it goes on to try every ten seconds, for as long as `epoch.wait_max`
  allows. Meanwhile [status](operations.md#why-does-it-not-run), [metrics](metrics.md),
  [notices](operations.md#being-told) and `/readyz` name it.
* **The exit code** of a command that ends by it ([all of them](operations.md#exit-codes)).

| scope | what a run does | until |
| --- | --- | --- |
"""
_SCOPES = {
    Scope.CHUNK: (
        "the chunk is read again in a later epoch, in smaller parts where it was too large",
        "it is read",
    ),
    Scope.TABLE: (
        "the table is stale, or its copy pauses: readers see it as of the last epoch at which it was exact. It is "
        "tried again after pauses of up to a minute, or waits for an order where `schema_change` is not `evolve`",
        "its copy is complete",
    ),
    Scope.SHARD: (
        "epochs close without the shard for `epoch.away_max`, and readers see its rows as of when it went",
        "it answers, or somebody has mended it: a run that follows looks for it after pauses that grow to ten seconds. "
        "A run with `--until-caught-up` ends by what does not pass. A lost log makes the shard's tables stale",
    ),
    Scope.TARGET: (
        "the run waits for a lake that does not answer. One that is damaged, or refuses a write, ends the run",
        "it answers",
    ),
    Scope.CLIENT: ("the client's stream ends with a reason, and no other client notices", "it comes again"),
    Scope.FEED: (
        "the run ends, since no further epoch could be right",
        "the cause is mended, and the run is started again",
    ),
}
_TABLE = """
| error | what it means | scope | tried again | exit code |
| --- | --- | --- | --- | --- |
"""
_FOOT = "\n(This page is written by `python -m catchment.cli.errors_reference`.)\n"


def reference() -> str:
    """The page as Markdown."""
    scopes = [f"| {scope.value} | {does} | {until} |" for scope, (does, until) in _SCOPES.items()]
    return _HEAD + "\n".join(scopes) + "\n" + _TABLE + "\n".join(map(_row, listed())) + "\n" + _FOOT


def listed(root: type[CatchmentError] = CatchmentError) -> Iterator[type[CatchmentError]]:
    """The errors that a user may meet, each behind the one that it is a kind of."""
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
            yield from listed(kind)


def _row(kind: type[CatchmentError]) -> str:
    meaning = re.sub(r"\s+", " ", (kind.__doc__ or "").strip()).partition(". ")[0].rstrip(".")
    again = "yes" if kind.retry is Retry.SAME else "no"
    if kind is errors.ServerSaid:
        again = "where the server is busy"
    return f"| `{kind.__name__}` | {meaning} | {kind.scope.value} | {again} | {kind.exit_code} |"


if __name__ == "__main__":
    (Path(__file__).parents[3] / "docs" / "errors.md").write_text(reference())
