"""The judge of a shard that has one server after another: each server's log has a base name of its own."""

from collections.abc import Mapping

from catchment.demo.server import PrivateServer
from tests.promises.soak import shop
from tests.promises.soak.shop import ShopReplay
from tests.promises.storm.replay import Marked
from tests.world.canonical import Key
from tests.world.oracle import State


class Succession:
    """What the shop's tables held at a place in the log of any of a shard's servers, which come in order."""

    def __init__(self, schema: str) -> None:
        self._keys = {f"{schema}.{table}": key for table, key in shop.KEYS.items()}
        self._shadows = {f"{schema}._{table}_new": key for table, key in shop.KEYS.items()}
        self._judges: list[tuple[str, ShopReplay]] = []
        self._marked = Marked(self._keys)

    def comes(self, server: PrivateServer) -> None:
        """A server takes over, with the rows that it has now; nobody may write meanwhile."""
        judge = ShopReplay.from_rest(server.login("root"), self._keys)
        assert isinstance(judge, ShopReplay)
        judge.follow(self._shadows, self._marked)
        self._judges.append((base_name(server.log_end()[0]), judge))

    def remember(self) -> None:
        """Read what the log of the newest server has, since files of it are to be purged."""
        self._judges[-1][1].remember()

    def advance(self, file: str, offset: int) -> State:
        """As of `ByLog`. What an earlier server's log has behind the last place asked for counts no more."""
        while self._judges[0][0] != base_name(file):
            assert len(self._judges) > 1, f"no server of the shard has a log {file}"
            del self._judges[0]
        return self._judges[0][1].advance(file, offset)

    def touched_since(self, file: str, offset: int) -> Mapping[str, set[Key]]:
        """As of `ByLog`, of the server that is judged now."""
        return self._judges[0][1].touched_since(file, offset)

    @property
    def state(self) -> State:
        """As of `ByLog`."""
        return self._judges[0][1].state


def base_name(file: str) -> str:
    """The name of a log, of which `file` is one file."""
    return file.rpartition(".")[0]
