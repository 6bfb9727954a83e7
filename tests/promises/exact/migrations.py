"""What tools for schema changes do to tables, in statements: `{t}` is the table, `{g}` the one beside it, `{d}` the old
one."""

from collections.abc import Iterable, Mapping

from catchment.model.epoch import Manifest
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.manifests import manifests
from tests.promises.exact.steps import Steps

BEGIN = (
    "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)",
    "INSERT INTO {t} VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)",
)
OTHER = "CREATE TABLE other (id INT PRIMARY KEY)"
PROOF = ("INSERT INTO other VALUES (1)", "DELETE FROM other")
MAKE = (
    "CREATE TABLE {g} LIKE {t}",
    "ALTER TABLE {g} MODIFY n BIGINT, ADD COLUMN m VARCHAR(9) DEFAULT 'new'",
)
FIRST_CHUNK = "INSERT IGNORE INTO {g} (id, n) SELECT id, n FROM {t} WHERE id <= 3"
MEANWHILE = (
    "UPDATE {t} SET n = 21 WHERE id = 2", "REPLACE INTO {g} (id, n) VALUES (2, 21)",
    "DELETE FROM {t} WHERE id = 3", "DELETE FROM {g} WHERE id = 3",
    "REPLACE INTO {t} (id, n) VALUES (7, 70)", "REPLACE INTO {g} (id, n) VALUES (7, 70)",
)  # fmt: skip
SECOND_CHUNK = "INSERT IGNORE INTO {g} (id, n) SELECT id, n FROM {t} WHERE id > 3"
CUT_OVER = "RENAME TABLE {t} TO {d}, {g} TO {t}"
COMMON = ("id", "n")
COLUMNS = ("id", "n", "m")


def of(table: str, statements: Iterable[str]) -> list[str]:
    """Statements for a table."""
    return [sql.format(t=table, g=f"_{table}_gho", d=f"_{table}_del") for sql in statements]


def shadows(steps: Steps) -> dict[str, tuple[str, ...]]:
    """The tables beside others that are followed, by the name of the other, and the shards that have them."""
    found = {}
    for one in manifests(steps)[-1].shadows:
        assert one.place_of is not None
        assert one.table.name == f"_{one.place_of.name}_gho"
        found[one.place_of.name] = one.shards
    return found


def follow(
    steps: Steps, stages: Iterable[Mapping[str, Iterable[str]]], shards: Mapping[str, Iterable[str]]
) -> None:
    """Run statements on shards, stage by stage, beside a run of the feed, each in epochs of its own. `shards`: behind
    the first stage the run has to follow shadow tables of these tables, on these shards. A run that is to catch up may
    end before it follows several."""
    wanted = {name: tuple(sorted(of_table)) for name, of_table in shards.items()}

    def holds(epochs: list[Manifest]) -> bool:
        return {
            one.place_of.name: one.shards for one in epochs[-1].shadows if one.place_of
        }.items() >= wanted.items()

    with FeedRun(steps.feed) as run:
        for stage in stages:
            for shard, statements in stage.items():
                steps.sql(shard, *statements)
            run.wait_for_log(steps.servers)
            run.wait(f"shadow tables of {wanted}", holds)
