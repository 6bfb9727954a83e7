"""The verdict on rows elsewhere as of a version: by the replayed log of each shard, at the cut of the checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.demo.server import PrivateServer
from tests.world.canonical import Key, Row
from tests.world.oracle import Oracle

Place = tuple[str, Key]


@dataclass(frozen=True, slots=True)
class Look:
    """What stood elsewhere at one moment: the version that was said there, and all rows by shard and key."""

    version: int
    rows: dict[Place, Row]


class Court:
    """Judges looks at one table whose key is an integer. Its oracles stand where the test began."""

    def __init__(self, servers: Mapping[str, PrivateServer], table: str, key: str, checkpoint: Path) -> None:
        self._table, self._checkpoint = table, checkpoint
        self._oracles = {
            shard: Oracle.from_rest(server.login(), {table: (key,)}) for shard, server in servers.items()
        }
        self.judged = 0
        self.copying = 0

    def judge(self, looks: list[Look]) -> None:
        """Raise AssertionError where rows are not those of the version. Looks come in the order of their versions."""
        cuts = self._cuts()
        for look in looks:
            cut = cuts[look.version]
            due: dict[Place, Row] = {}
            for shard, state in cut["shards"].items():
                at, (copy,) = state["position"]["at"], state["copies"]
                rows = self._oracles[shard].advance(at["file"], at["offset"])[self._table]
                due |= {(shard, key): row for key, row in rows.items() if _is_copied(copy, key)}
                self.copying += not copy.get("done", False)
            wrong = [
                place for place in due.keys() | look.rows.keys() if due.get(place) != look.rows.get(place)
            ]
            assert not wrong, [(place, look.rows.get(place), due.get(place)) for place in wrong[:3]]
            self.judged += 1

    def _cuts(self) -> dict[int, dict[str, Any]]:
        """The cut of each version, from the offsets that Spark has written."""
        found = {}
        for file in (self._checkpoint / "offsets").glob("[0-9]*"):
            offset = json.loads(file.read_text().splitlines()[-1])
            if "cut" in offset:
                found[int(offset["cut"]["epoch"])] = offset["cut"]
        return found


def _is_copied(copy: dict[str, Any], key: Key) -> bool:
    copied, born = copy.get("copied"), copy.get("born_after")
    if copy.get("done", False) or (copied is not None and key <= tuple(copied)):
        return True
    return born is not None and key > tuple(born)
