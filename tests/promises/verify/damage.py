"""Damage of all kinds planted in the lake of a feed of two shards, and what finds and mends it."""

from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path

from catchment.cli.main import execute
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.model.chunk import Chunk
from catchment.model.epoch import Manifest, Part
from catchment.model.order import Action, Kept, Order
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.state import orders
from catchment.state.store import Store
from tests.promises.exact.steps import Steps
from tests.world.engines import Here
from tests.world.planted import Rewrite, plant, with_copy, with_values, without
from tests.world.settled import settled

ROWS = 60
# Of each table the type of its key, how it is made of a number, and one that no row has.
KEYS = {
    "numbers": ("INT", "seq", 99_999),
    "texts": (
        "VARCHAR(20) COLLATE utf8mb4_unicode_ci",
        "CONCAT(IF(seq % 2, 'n', 'N'), LPAD(seq, 4, '0'))",
        "x",
    ),
    "decimals": ("DECIMAL(12, 2)", "seq * 1.25", Decimal("0.33")),
    "bytes": ("VARBINARY(20)", "CONCAT('k', LPAD(seq, 4, '0'))", b"l"),
}
ONLY_ON_A = (1000, 1001)


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def plain(steps: Steps, table: str, rewrite: Rewrite) -> None:
    """Damage the plain table."""
    of = TableId(steps.schema, table)
    assert plant(Path(str(table_dir(steps.feed.sink.path, of))), newest(steps).shape(of), rewrite)


def waiting(steps: Steps, table: str, rewrite: Rewrite) -> None:
    """Damage the changes that the plain table does not have yet."""
    of = TableId(steps.schema, table)
    directory = Path(str(tail_dir(steps.feed.sink.path, of)))
    assert plant(directory, newest(steps).shape(of), rewrite, Part.CHANGES)


def found(steps: Steps) -> Verdict:
    return verify(steps.feed, {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}, Here())


def in_small_chunks(steps: Steps) -> None:
    """Have a table compared in many parts."""
    steps.set(copy={"chunk_rows_max": 7, "group_time": "0s"})


def counts(verdict: Verdict, table: str) -> tuple[int, int, int]:
    differences = next(one for of, one in verdict.found.items() if of.name == table)
    return differences.missing, differences.extra, differences.changed


def damage(steps: Steps, table: str) -> None:
    """All kinds of damage, in base and in changes. `FOUND` says what verify makes of it."""
    nobodys = KEYS[table][2]
    first, second = ONLY_ON_A
    plain(steps, table, without("id", 3, 60))  # missing on both shards
    plain(steps, table, with_values("id", 5, "v", "wrong"))  # changed on both
    plain(
        steps, table, with_copy("id", 7, "v", "twice")
    )  # there twice on both: one is extra, and may be the right one
    plain(steps, table, with_copy("id", 8, "v", "old"))  # there twice on both, and equal: one is extra
    plain(steps, table, with_copy("id", 11, "k", nobodys))  # extra on both
    plain(steps, table, with_values("id", first, "_shard", "b"))  # missing on a, extra on b
    plain(steps, table, with_copy("id", second, "_shard", "b"))  # extra on b
    waiting(steps, table, without("id", 30))  # changed on both: the change is lost
    waiting(steps, table, with_values("id", 31, "v", "wrong"))  # changed on both
    waiting(steps, table, with_values("id", 32, "_deleted", True))  # missing on both
    waiting(steps, table, with_copy("id", 33, "k", nobodys))  # the same extra key once more


MISSING = 2 * 2 + 1 + 2
EXTRA = 2 + 2 + 2 + 1 + 1
CHANGED = {
    4 * 2 - 2,
    4 * 2 - 1,
    4 * 2,
}  # of a row that is there twice one is right, and either may be compared


def must_be_found(steps: Steps) -> None:
    verdict = found(steps)
    for table in KEYS:
        missing, extra, changed = counts(verdict, table)
        assert (missing, extra) == (MISSING, EXTRA)
        assert changed in CHANGED


def repair(steps: Steps) -> int:
    return execute(["verify", str(steps.file), "--repair"])


def must_be_equal(steps: Steps) -> None:
    """By verify, and by what a reader gets."""
    verdict = found(steps)
    assert verdict.differences == 0, verdict.found
    must_be_read_alike(steps)


def must_be_read_alike(steps: Steps) -> None:
    """A reader gets what the shards have."""
    for table in KEYS:
        assert steps.lake(table, "k", "id", "v") == steps.source(table, "k", "id", "v")


def goes_on(steps: Steps) -> None:
    """The feed goes on, and its plain tables take up what was mended."""
    must_be_read_alike(steps)
    settled(steps.feed)
    must_be_read_alike(steps)
    for table in KEYS:
        steps.everywhere(
            f"UPDATE {table} SET v = 'later' WHERE id < 13", f"DELETE FROM {table} WHERE id = 32"
        )
    steps.run()
    must_be_equal(steps)


def give(steps: Steps, differing: Sequence[tuple[Chunk, ...]]) -> None:
    with opened(steps) as store:
        for chunks in differing:
            of = chunks[0].of
            orders.give(store, Order(Action.MEND, "ada", 1, of.table, of.shard, chunks=chunks))


def all_orders(steps: Steps) -> list[Kept]:
    with opened(steps) as store, store.database.snapshot() as connection:
        return orders.listed(connection, store)


def opened(steps: Steps) -> closing[Store]:
    return closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name))
