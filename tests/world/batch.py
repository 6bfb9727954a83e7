"""Several statements in one round trip: a writer that waits for every answer takes the interpreter from the rest."""

from collections.abc import Sequence
from typing import Any

from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

# How `PrivateServer.connect` is called for a session that takes several statements at once.
BATCHES: dict[str, Any] = {"client_flag": CLIENT.MULTI_STATEMENTS}


def execute_together(cursor: Cursor, statements: Sequence[str]) -> int:
    """Run statements without results, in a session made with `BATCHES`; how many rows the server says were changed.

    The server stops at the first that fails, and its error is raised.
    """
    changed = cursor.execute(";".join(statements))
    while cursor.nextset():
        changed += cursor.rowcount
    return changed
