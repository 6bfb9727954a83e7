"""What the epochs of a feed say of its tables, and all of its tables compared with the source at once."""

from collections.abc import Collection, Mapping, Sequence

from catchment.api.read import read
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.exact.steps import Rows, Steps


def manifests(steps: Steps) -> list[Manifest]:
    """Those of all committed epochs."""
    return [row.manifest for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()]


def newest(steps: Steps) -> Manifest:
    """That of the newest committed epoch."""
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def carried(manifest: Manifest) -> set[str]:
    """The tables that have a copy in an epoch."""
    return {shape.table.name for shape in manifest.shapes}


def stale(manifest: Manifest) -> set[str]:
    """The tables that readers see as of an earlier epoch."""
    return {one.table.name for one in manifest.stale}


def outside(manifest: Manifest) -> set[str]:
    """The tables that left the feed, or never entered."""
    return {one.table.name for one in manifest.outside}


def ever_stale(epochs: Collection[Manifest]) -> set[str]:
    """The tables that were stale in some of these epochs."""
    return {name for one in epochs for name in stale(one)}


def generations(epochs: Collection[Manifest], table: str) -> list[int]:
    """The copies of a table, by the epoch with which each began."""
    return sorted({shape.generation for one in epochs for shape in one.shapes if shape.table.name == table})


def copied(epochs: Collection[Manifest], tables: Collection[str]) -> set[str]:
    """Those of the tables of which rows were read from the source by SELECT, or were to be."""
    return {
        copy.table.name
        for one in epochs
        for copy in one.cut.copies
        if copy.table.name in tables and not copy.done
    }


def born_on(epochs: Sequence[Manifest], table: str) -> set[str]:
    """The shards on which a table's newest copy was complete in the epoch with which it began."""
    (shape,) = (one for one in epochs[-1].shapes if one.table.name == table)
    entered = next(one for one in epochs if one.epoch == shape.generation)
    return {
        shard
        for shard, state in entered.cut.shards.items()
        for copy in state.copies
        if copy.table == shape.table and copy.done
    }


def must_be_chain(epochs: Sequence[Manifest]) -> None:
    """Each epoch follows the one before it."""
    numbers = [one.epoch for one in epochs]
    assert [one.previous for one in epochs[1:]] == numbers[:-1]
    assert numbers == sorted(set(numbers))


def lake(steps: Steps, tables: Mapping[str, Sequence[str]], epoch: int | None = None) -> dict[str, Rows]:
    """The rows of tables as of an epoch, the newest by default: the shard and these columns."""
    names = list(tables)
    states = read(steps.feed, [TableId(steps.schema, name) for name in names], epoch)
    found = {}
    for name, state in zip(names, states, strict=True):
        wanted = ("_shard", *tables[name])
        found[name] = by_text(tuple(row[c] for c in wanted) for row in state.arrow().to_pylist())
    return found


def source(steps: Steps, tables: Mapping[str, Sequence[str]]) -> dict[str, Rows]:
    """The same of the shards; those that do not have a table have no rows."""
    found: dict[str, Rows] = {name: [] for name in tables}
    for shard, server in steps.servers.items():
        there = {row[0] for row in server.sql(f"SHOW TABLES FROM {steps.schema}")}
        for name, columns in tables.items():
            if name in there:
                rows = server.sql(f"SELECT {', '.join(columns)} FROM {steps.schema}.{name}")
                found[name] += [(shard, *row) for row in rows]
    return {name: by_text(rows) for name, rows in found.items()}


def must_be_equal(steps: Steps, tables: Mapping[str, Sequence[str]]) -> None:
    """Lake and source have the same rows of each table; all that differ are named."""
    must_be_rows(lake(steps, tables), source(steps, tables))


def must_be_rows(found: Mapping[str, Rows], wanted: Mapping[str, Rows]) -> None:
    """Of each table the same rows, none of them twice; all that differ are named."""
    wrong = {
        name: f"too many {_less(found[name], rows)}, missing {_less(rows, found[name])}"
        for name, rows in wanted.items()
        if found[name] != rows
    }
    assert not wrong, "\n".join(f"{name}: {how}" for name, how in wrong.items())


def must_go_on(
    steps: Steps, since: int, held_up: Collection[str], others: Mapping[str, Sequence[str]]
) -> None:
    """In the first epoch behind another one these tables are stale, and it has all rows that the shards have of others.
    Nobody may have written to these since."""
    first = next(one for one in manifests(steps) if one.epoch > since)
    assert stale(first) == {*held_up}
    must_be_rows(lake(steps, others, first.epoch), source(steps, others))


def by_text(rows: object) -> Rows:
    """Rows in an order that NULL has, too."""
    return sorted(rows, key=str)  # type: ignore[call-overload,no-any-return]


def _less(rows: Rows, others: Rows) -> Rows:
    left = list(rows)
    for one in others:
        if one in left:
            left.remove(one)
    return left[:5]
