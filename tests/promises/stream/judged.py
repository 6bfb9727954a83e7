"""The verdict on a client's rows at a vgtid: by the replayed log, as far as the stream says that rows are copied."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from catchment.demo.server import PrivateServer
from tests.promises.exact.verdict import ServerOrder
from tests.promises.stream.mirror import Mirror
from tests.world.canonical import Key, Row
from tests.world.oracle import Oracle

# Tables whose keys have a collation: their order is the server's alone.
COLLATED = ("people",)


class StreamCourt:
    """Compares a client's rows with those that the log of each shard leads to. Oracles stand where the test began."""

    def __init__(
        self,
        servers: Mapping[str, PrivateServer],
        keys: Mapping[str, tuple[str, ...]],
        oracles: Mapping[str, Oracle],
    ) -> None:
        self.servers, self.keys, self.oracles = servers, keys, oracles
        self.order = ServerOrder(next(iter(servers.values())), "utf8mb4_unicode_ci", 60)
        self.judged = 0
        self.copying = 0

    @classmethod
    def of(cls, servers: Mapping[str, PrivateServer], keys: Mapping[str, tuple[str, ...]]) -> "StreamCourt":
        """Its oracles begin with the rows of now; nobody may write meanwhile."""
        return cls(
            servers,
            keys,
            {shard: Oracle.from_rest(one.login(), keys) for shard, one in servers.items()},
        )

    def beside(self) -> "StreamCourt":
        """Another one, for another client: a log is read once for both."""
        oracles = {shard: oracle.beside() for shard, oracle in self.oracles.items()}
        return StreamCourt(self.servers, self.keys, oracles)

    def judge(self, mirror: Mirror) -> None:
        """Raise AssertionError where the client's rows are not those of the vgtid. Later ones only."""
        self.judged += 1
        for name, state in json.loads(mirror.text)["cut"]["shards"].items():
            shard = name.partition("/")[2]
            at = state["position"]["at"]
            rows = self.oracles[shard].advance(at["file"], at["offset"])
            copies = {f"{c['table']['schema']}.{c['table']['name']}": c for c in state["copies"]}
            assert copies.keys() == self.keys.keys()
            for table, copy in copies.items():
                self._table(shard, table, copy, mirror.rows.get((shard, table), {}), rows[table])

    def _table(
        self, shard: str, table: str, copy: dict[str, Any], have: Mapping[Key, Row], source: Mapping[Key, Row]
    ) -> None:
        done = copy.get("done", False)
        self.copying += not done
        collated = table.endswith(COLLATED)
        due = {key for key in source if done or self._copied(copy, key, collated=collated)}
        where = f"{shard} {table} {copy}"
        missing = {key for key in due if have.get(key) != source[key]}
        assert not missing, (
            f"{where}: {[(key, have.get(key), source[key]) for key in sorted(missing, key=str)[:3]]}"
        )
        # Of a collated table rows that the log changed are there before their chunk comes.
        beyond = {key for key in have.keys() - due if not collated or done or have[key] != source.get(key)}
        assert not beyond, (
            f"{where}: {[(key, have[key], source.get(key)) for key in sorted(beyond, key=str)[:3]]}"
        )

    def _copied(self, copy: dict[str, Any], key: Key, *, collated: bool) -> bool:
        copied, born = copy.get("copied"), copy.get("born_after")
        if copied is not None and not self._above(key, copied, collated=collated):
            return True
        return not collated and born is not None and self._above(key, born, collated=False)

    def _above(self, key: Key, bound: Sequence[Any], *, collated: bool) -> bool:
        if not collated:
            return bool(key[: len(bound)] > tuple(bound))
        return self._sorted(key) > self._sorted(bound)

    def _sorted(self, key: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.order(part) if isinstance(part, str) else part for part in key)
