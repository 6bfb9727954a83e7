"""A TRUNCATE that stands in the log and waits for a replica: no SELECT gives the rows that it takes (DESIGN 4)."""

from concurrent.futures import ThreadPoolExecutor

from catchment.demo.server import PrivateServer
from tests.world.held import held_commit
from tests.world.patience import PATIENCE_SECONDS, until

_SELECT = "SELECT writer FROM d.told"
_WAITS = (
    f"SELECT 1 FROM information_schema.processlist WHERE info = '{_SELECT}' AND state LIKE '%metadata lock'"
)


def test_no_select_gives_rows_of_a_truncate_that_is_logged(server: PrivateServer) -> None:
    """So a chunk whose epoch has the statement was read behind it: SELECT waits for its metadata lock."""
    held = held_commit(server, "TRUNCATE d.told")
    with ThreadPoolExecutor(1) as pool:
        select = pool.submit(server.sql, _SELECT)
        until("a SELECT that waits, or has an answer", lambda: select.done() or server.sql(_WAITS))
        held.release()
        assert select.result(PATIENCE_SECONDS) == []
    assert server.sql(_SELECT) == []
