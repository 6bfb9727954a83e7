"""The kinds of DDL of docs/ddl.md that alter one table, as statements for a table that stands so."""

import random
from collections.abc import Callable

from tests.promises.storm.sight import Sight

Kind = Callable[[Sight, random.Random], str | None]
"""A statement on a table; None where the kind does not fit it."""

_FREE = (
    "INT",
    "BIGINT",
    "VARCHAR(40)",
    "DECIMAL(9,2)",
    "INT NULL DEFAULT NULL",
    "VARCHAR(9) COMMENT 'of the storm'",
)
_VALUED = (
    "INT NOT NULL DEFAULT 7",
    "BIGINT DEFAULT -3",
    "VARCHAR(20) NOT NULL DEFAULT 'it''s new'",
    "DECIMAL(6,2) DEFAULT 1.50",
    "DATE DEFAULT '2026-02-28'",
    "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
)
_FILLED_BY_SERVER = (
    "COLUMN {} DATETIME DEFAULT CURRENT_TIMESTAMP",
    "COLUMN {} VARCHAR(40) DEFAULT 'für'",
    "COLUMN ({} INT)",
    "COLUMN {} DECIMAL(5,1) NOT NULL DEFAULT 1.25",
)
_GO_BY = (
    "ALTER TABLE {} FORCE",
    "ALTER TABLE {} ENGINE=InnoDB",
    "ALTER TABLE {} COMMENT='of the storm'",
    "ALTER TABLE {} ROW_FORMAT=DYNAMIC",
    "OPTIMIZE TABLE {}",
    "ANALYZE TABLE {}",
)
_WIDER = {
    "int": ("BIGINT", "DECIMAL(20,2)", "VARCHAR(30)"),
    "bigint": ("DECIMAL(30,0)", "VARCHAR(30)"),
    "varchar": ("VARCHAR(90)", "TEXT"),
    "decimal": ("DECIMAL(20,4)", "DOUBLE"),
}
_BACK_AND_FORTH = {
    "k": ("INT NOT NULL DEFAULT 0", "BIGINT NOT NULL DEFAULT 0"),
    "status": ("SMALLINT UNSIGNED NOT NULL", "INT UNSIGNED NOT NULL"),
    "quantity": ("BIGINT NOT NULL", "INT NOT NULL"),
    "label": ("VARCHAR(30)", "CHAR(12)"),
}


def _fresh(letter: str, rng: random.Random) -> str:
    """A name that never comes again: one that a shard drops and another adds in one epoch ends a feed (docs/ddl.md)."""
    return f"{letter}{rng.randrange(10**9)}"


def add_null(seen: Sight, rng: random.Random) -> str:
    place = rng.choice(("", " FIRST", f" AFTER `{rng.choice(list(seen.columns))}`"))
    return f"ALTER TABLE {seen.name} ADD COLUMN {_fresh('x', rng)} {rng.choice(_FREE)}{place}"


def add_two(seen: Sight, rng: random.Random) -> str:
    first, second = (f"ADD COLUMN {_fresh('x', rng)} {rng.choice(_FREE)}" for _ in range(2))
    return f"ALTER TABLE {seen.name} {first}, {second}"


def add_with_value(seen: Sight, rng: random.Random) -> str:
    return f"ALTER TABLE {seen.name} ADD COLUMN {_fresh('x', rng)} {rng.choice(_VALUED)}"


def add_filled_by_server(seen: Sight, rng: random.Random) -> str:
    return f"ALTER TABLE {seen.name} ADD {rng.choice(_FILLED_BY_SERVER).format(_fresh('x', rng))}"


def drop_columns(seen: Sight, rng: random.Random) -> str | None:
    if not seen.added:
        return None
    chosen = rng.sample(seen.added, rng.randint(1, len(seen.added)))
    return f"ALTER TABLE {seen.name} {', '.join(f'DROP COLUMN {name}' for name in chosen)}"


def add_index(seen: Sight, rng: random.Random) -> str:
    index = _fresh("i", rng)
    if rng.random() < 0.5:
        return f"CREATE INDEX {index} ON {seen.name} ({seen.key[0]})"
    return f"ALTER TABLE {seen.name} ADD INDEX {index} ({seen.key[0]})"


def drop_index(seen: Sight, rng: random.Random) -> str | None:
    return f"DROP INDEX {rng.choice(seen.indexes)} ON {seen.name}" if seen.indexes else None


def rename_index(seen: Sight, rng: random.Random) -> str | None:
    if not seen.indexes:
        return None
    return f"ALTER TABLE {seen.name} RENAME INDEX {rng.choice(seen.indexes)} TO {_fresh('i', rng)}"


def go_by(seen: Sight, rng: random.Random) -> str:
    return rng.choice(_GO_BY).format(seen.name)


def set_default(seen: Sight, rng: random.Random) -> str | None:
    numeric = [name for name in seen.added if seen.columns[name].startswith(("int", "bigint", "decimal"))]
    return f"ALTER TABLE {seen.name} ALTER {rng.choice(numeric)} SET DEFAULT 5" if numeric else None


def _wider(seen: Sight, name: str, rng: random.Random) -> str | None:
    types = next((to for begin, to in _WIDER.items() if seen.columns[name].startswith(begin)), ())
    return rng.choice(types) if types else None


def modify(seen: Sight, rng: random.Random) -> str | None:
    base = [name for name in seen.columns if name in _BACK_AND_FORTH and name not in seen.key]
    if base and (not seen.added or rng.random() < 0.5):
        name = rng.choice(base)
        return f"ALTER TABLE {seen.name} MODIFY {name} {rng.choice(_BACK_AND_FORTH[name])}"
    if not seen.added:
        return None
    name = rng.choice(seen.added)
    wider = _wider(seen, name, rng)
    return f"ALTER TABLE {seen.name} MODIFY COLUMN {name} {wider}" if wider else None


def change(seen: Sight, rng: random.Random) -> str | None:
    if not seen.added:
        return None
    name = rng.choice(seen.added)
    wider = _wider(seen, name, rng)
    return f"ALTER TABLE {seen.name} CHANGE COLUMN {name} {_fresh('x', rng)} {wider}" if wider else None


def rename_column(seen: Sight, rng: random.Random) -> str | None:
    if not seen.added:
        return None
    return f"ALTER TABLE {seen.name} RENAME COLUMN {rng.choice(seen.added)} TO {_fresh('x', rng)}"


def truncate(seen: Sight, rng: random.Random) -> str:
    return f"TRUNCATE TABLE {seen.name}"


def unlisted(seen: Sight, rng: random.Random) -> str:
    """Whatever no line of docs/ddl.md names."""
    return f"ALTER TABLE {seen.name} ORDER BY {seen.key[0]}"


def convert(seen: Sight, rng: random.Random) -> str | None:
    if "name" in seen.key:  # its keys might clash in another order
        return None
    collation = rng.choice(("utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_general_ci"))
    if "sku" in seen.key:
        return f"ALTER TABLE {seen.name} DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}"
    return f"ALTER TABLE {seen.name} CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation}"


def change_key(seen: Sight, rng: random.Random) -> str | None:
    """A column more in the key, or back; `id` stays unique, by which the judges tell rows."""
    if "k" not in seen.columns:
        return None
    if seen.has_old_key:
        return f"ALTER TABLE {seen.name} DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP INDEX u_id"
    return f"ALTER TABLE {seen.name} DROP PRIMARY KEY, ADD PRIMARY KEY (id, k), ADD UNIQUE u_id (id)"


def part(seen: Sight, rng: random.Random) -> str | None:
    """Partitions for a table that has none, or none for one that has them."""
    if seen.ranges or seen.key[0] != "id":
        return None
    how = "REMOVE PARTITIONING" if seen.parted else f"PARTITION BY HASH (id) PARTITIONS {rng.randint(2, 4)}"
    return f"ALTER TABLE {seen.name} {how}"


def part_further(seen: Sight, rng: random.Random) -> str | None:
    if not seen.ranges:
        return None
    top = max((bound for _, bound in seen.ranges if bound), default=0)
    last = seen.ranges[-1][0]
    bounds = (f"({top + 100})", "MAXVALUE")
    more = ", ".join(f"PARTITION {_fresh('q', rng)} VALUES LESS THAN {bound}" for bound in bounds)
    return f"ALTER TABLE {seen.name} REORGANIZE PARTITION {last} INTO ({more})"


def drop_partition(seen: Sight, rng: random.Random) -> str | None:
    names = [name for name, bound in seen.ranges if bound]
    return f"ALTER TABLE {seen.name} DROP PARTITION {rng.choice(names)}" if len(names) > 2 else None


def truncate_partition(seen: Sight, rng: random.Random) -> str | None:
    if not seen.ranges:
        return None
    return f"ALTER TABLE {seen.name} TRUNCATE PARTITION {rng.choice(seen.ranges)[0]}"


ALTERS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        add_null, add_two, add_with_value, add_filled_by_server, drop_columns, add_index, drop_index,
        rename_index, go_by, set_default, modify, change, rename_column, truncate, unlisted, convert, change_key,
        part, part_further, drop_partition, truncate_partition,
    )
}  # fmt: skip


def swapped(seen: Sight, rng: random.Random) -> str:
    """What a tool is to make of a table, as it stands behind ALTER TABLE."""
    statement = (modify(seen, rng) if rng.random() < 0.5 else None) or add_with_value(seen, rng)
    return statement.split(" ", 3)[3]
