"""XA transactions that stay prepared when their sessions have ended: leave one behind, wait for their ends, end all."""

from pymysql.err import OperationalError

from catchment.demo.server import PrivateServer
from tests.world.patience import until
from tests.world.servers.launch import PrivateMySQL

_ROLLED_BACK = 1402


def prepare(server: PrivateServer, xid: str, *statements: str) -> None:
    """Prepare an XA transaction and leave it, as a program that dies does."""
    server.sql(f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}")


def await_prepared(server: PrivateServer) -> None:
    """Wait until others have ended each that is prepared now. They may prepare others meanwhile."""
    left = set(_prepared(server))

    def ended() -> bool:
        left.intersection_update(_prepared(server))
        return not left

    until("others have ended what was prepared:", ended, seen=lambda: left)


def roll_back_prepared(server: PrivateServer) -> None:
    """End what is prepared: its tables could not be dropped."""
    for xid in _prepared(server):
        try:
            server.sql(f"XA ROLLBACK {xid}")
        except OperationalError as error:
            if error.args[0] != _ROLLED_BACK:  # it changed nothing, and its session has ended
                raise


def _prepared(server: PrivateServer) -> list[str]:
    """The XIDs of XA RECOVER, as XA ROLLBACK takes them."""
    if not isinstance(server, PrivateMySQL):
        return [str(xid) for *_, xid in server.sql("XA RECOVER FORMAT='SQL'")]
    rows = [
        (code, size, bytes.fromhex(str(data)[2:]))
        for code, size, _, data in server.sql("XA RECOVER CONVERT XID")
    ]
    return [f"X'{name[:size].hex()}',X'{name[size:].hex()}',{code}" for code, size, name in rows]
