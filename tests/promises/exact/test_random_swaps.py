"""Tools do a part of their work on a shard now and then: readers see the old state or the new one, and no mixture."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from tests.promises.exact.conftest import Servers
from tests.promises.exact.manifests import manifests
from tests.promises.exact.migrations import BEGIN, COMMON, CUT_OVER, OTHER, PROOF, of
from tests.promises.exact.steps import Steps, caught_up
from tests.world.settled import settled

SHARDS = ("-80", "80-")
ALTERS = (
    "ADD COLUMN m{0} VARCHAR(9) DEFAULT 'new'",
    "ADD COLUMN m{0} INT NOT NULL DEFAULT 3",
    "MODIFY n BIGINT",
    "ENGINE = InnoDB",
    "DROP COLUMN {1}",
)


class Migrations:
    """A tool on each shard, that does a part of its work now and then, between changes of rows and other DDL."""

    def __init__(self, feed: Steps, seed: int) -> None:
        self.steps, self.rng = feed, random.Random(seed)
        self.under_way: set[str] = set()
        self.number = self.exact = self.stale = 0
        self.seen = {manifests(feed)[-1].epoch: self._source()}

    def step(self) -> None:
        # One shard after the other, more often than both at once.
        mine = sorted(self.under_way) if self.under_way and self.rng.random() < 0.8 else SHARDS
        shard = self.rng.choice(mine)
        for _ in range(self.rng.randrange(4)):
            self._write(self.rng.choice(SHARDS))
        if shard not in self.under_way:
            self._begin(shard)
        elif self.rng.random() < 0.4:
            self.cut_over(shard)
        else:
            self.steps.sql(shard, self._chunk(shard))
        if self.rng.random() < 0.7:
            self.run()
        if self.rng.random() < 0.5:
            settled(self.steps.feed)

    def run(self) -> None:
        before = manifests(self.steps)[-1]
        self.steps.run()
        now = self._source()
        for one in manifests(self.steps):
            if one.epoch > before.epoch:
                rests = one.cut.positions == before.cut.positions
                self.seen[one.epoch] = self.seen[before.epoch] if rests else now
        (stale,) = manifests(self.steps)[-1].stale or (None,)
        self.exact += stale is None
        self.stale += stale is not None
        self.must_be(now if stale is None else self.seen[stale.epoch])

    def must_be(self, wanted: dict[str, list[dict[str, object]]]) -> None:
        rows = catchment.read(self.steps.file, f"{self.steps.schema}.t").arrow().to_pylist()
        for shard, there in wanted.items():
            here = [row for row in rows if row["_shard"] == shard]
            names = set(there[0]) if there else set()
            told = [{n: v for n, v in row.items() if n in names or v is not None} for row in here]
            for row in told:
                del row["_shard"], row["_epoch"]
            assert sorted(map(_text, told)) == sorted(map(_text, there)), shard

    def _source(self) -> dict[str, list[dict[str, object]]]:
        found = {}
        for shard, server in self.steps.servers.items():
            names = self.steps.columns(shard, "t")
            rows = server.sql(f"SELECT {', '.join(names)} FROM {self.steps.schema}.t")
            found[shard] = [dict(zip(names, row, strict=True)) for row in rows]
        return found

    def _write(self, shard: str) -> None:
        key, value = self.rng.randrange(12), self.rng.randrange(100)
        written = self.rng.choice(
            ["REPLACE INTO {0} (id, n) VALUES ({1}, {2})", "DELETE FROM {0} WHERE id = {1}"]
            + ["UPDATE {0} SET n = {2} WHERE id = {1}"] * 2
        )
        both = ["t", "_t_gho"] if shard in self.under_way else ["t"]
        # As a tool does: a row that it has not copied yet is not updated there.
        self.steps.sql(shard, *(written.format(name, key, value) for name in both))

    def _begin(self, shard: str) -> None:
        self.number += 1
        more = [one for one in self.steps.columns(shard, "t") if one not in COMMON]
        alter = self.rng.choice(ALTERS[: len(ALTERS) if more else -1])
        alter = alter.format(self.number, self.rng.choice(more) if more else "")
        self.steps.sql(shard, "CREATE TABLE _t_gho LIKE t", f"ALTER TABLE _t_gho {alter}")
        self.under_way.add(shard)

    def _chunk(self, shard: str) -> str:
        there = set(self.steps.columns(shard, "_t_gho"))
        names = ", ".join(one for one in self.steps.columns(shard, "t") if one in there)
        below = self.rng.randrange(14)
        return f"INSERT IGNORE INTO _t_gho ({names}) SELECT {names} FROM t WHERE id < {below}"

    def cut_over(self, shard: str) -> None:
        """The rest of a tool's work."""
        there = set(self.steps.columns(shard, "_t_gho"))
        names = ", ".join(one for one in self.steps.columns(shard, "t") if one in there)
        rest = (
            f"INSERT IGNORE INTO _t_gho ({names}) SELECT {names} FROM t WHERE id <> {self.rng.randrange(12)}"
        )
        self.steps.sql(shard, rest, *of("t", [CUT_OVER]), "DROP TABLE _t_del")
        self.under_way.remove(shard)


def _text(row: dict[str, object]) -> str:
    return str(sorted((name, str(value)) for name, value in row.items()))


def test_random_migrations(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [OTHER, *of("t", BEGIN)]
    steps = caught_up(monkeypatch, tmp_path, servers, fresh_schema(*servers.values()), *made)
    migrations = Migrations(steps, seed=0)
    for _ in range(25):
        migrations.step()
    for shard in sorted(migrations.under_way):
        migrations.cut_over(shard)
    # A copy needs columns of one type.
    steps.everywhere("ALTER TABLE t MODIFY n BIGINT")
    migrations.run()
    steps.renew(*PROOF)
    migrations.run()
    assert min(migrations.exact, migrations.stale) > 0
