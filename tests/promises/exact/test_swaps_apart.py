"""One shard after the other gets an altered table by gh-ost or pt-online-schema-change: nothing is copied from any."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.exact.conftest import Servers
from tests.promises.exact.kept_past import must_tell, plain
from tests.promises.exact.manifests import (
    copied,
    lake,
    manifests,
    must_be_equal,
    must_be_rows,
    newest,
    source,
    stale,
)
from tests.promises.exact.migrations import (
    BEGIN,
    COLUMNS,
    COMMON,
    CUT_OVER,
    FIRST_CHUNK,
    MAKE,
    MEANWHILE,
    OTHER,
    PROOF,
    SECOND_CHUNK,
    follow,
    of,
    shadows,
)
from tests.promises.exact.steps import Steps, caught_up
from tests.world.servers.chosen import chosen_server
from tests.world.settled import settled

ALL = ("-80", "80-", "x")
TOOL: tuple[list[str], ...] = ([*MAKE], [FIRST_CHUNK], [*MEANWHILE, SECOND_CHUNK])
# DDL while a settle is waited for, and whether the table is copied then.
DDL: dict[str, tuple[list[str], bool]] = {
    "truncated": (["TRUNCATE TABLE {t}", "INSERT INTO {t} (id, n) VALUES (1, 2)"], False),
    "longer": (["ALTER TABLE {t} ADD COLUMN later INT DEFAULT 5", "UPDATE {t} SET n = 8 WHERE id = 6"], False),
    "renamed": (["ALTER TABLE {t} RENAME COLUMN n TO o", "ALTER TABLE {t} RENAME COLUMN o TO n"], False),
    "keyed": (["ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"], True),
    "unknown": (["ALTER TABLE {t} ORDER BY id"], True),
}  # fmt: skip
# On the shard that swapped, on one that did not, and on all.
ON = {"there": ("-80",), "elsewhere": ("80-",), "everywhere": ALL}
WAITING = {
    f"{ddl}_{where}": (statements, copied, on)
    for ddl, (statements, copied) in DDL.items()
    for where, on in ON.items()
}
# A tool makes what does not fit the rows of the other shards.
UNFIT = {
    "as_text": ["CREATE TABLE {g} LIKE {t}", "ALTER TABLE {g} MODIFY n VARCHAR(20)"],
    "by_another_key": ["CREATE TABLE {g} LIKE {t}", "ALTER TABLE {g} DROP PRIMARY KEY, ADD PRIMARY KEY (n)"],
    "by_a_wider_key": ["CREATE TABLE {g} LIKE {t}", "ALTER TABLE {g} MODIFY id BIGINT"],
}
USUAL, TWO, ANOTHER = "usual", "two_shards", "another_meanwhile"
# Where a table may be copied in the end, its columns are to have one type on all shards.
LONGER = ["CREATE TABLE {g} LIKE {t}", "ALTER TABLE {g} ADD COLUMN m INT"]
TABLES = (USUAL, TWO, ANOTHER, *WAITING, *UNFIT)


@pytest.fixture(scope="module")
def three(servers: Servers) -> Iterator[dict[str, PrivateServer]]:
    with chosen_server(server_id=77, password="t") as third:
        yield {**servers, "x": third}


def migrate(steps: Steps, shards: dict[str, tuple[str, ...]]) -> None:
    """All that a tool does up to the cut-over, for these tables on these shards, in several epochs."""
    stages = []
    for number, statements in enumerate(TOOL):
        stage: dict[str, list[str]] = {}
        for name, where in shards.items():
            made = statements
            if not number and name not in (USUAL, TWO):
                made = UNFIT.get(name, LONGER)
            for shard in where:
                stage.setdefault(shard, []).extend(of(name, made))
        stages.append(stage)
    follow(steps, stages, shards)
    assert shadows(steps) == shards


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {}, marks=pytest.mark.promise("a table swap is followed when one shard after the other does it")
        ),
        {"vectors": False},
    ],
    ids=["usual", "without vectors"],
)
def test_one_shard_after_the_other(
    three: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, bool],
) -> None:
    made = [OTHER, *(sql for name in TABLES for sql in of(name, BEGIN))]
    steps = caught_up(monkeypatch, tmp_path, three, fresh_schema(*three.values()), *made)
    steps.set(sink={"path": str(steps.feed.sink.path), "changes": True, **options})
    steps.run()
    settled(steps.feed)
    common = dict.fromkeys(TABLES, COMMON)
    begin, past = newest(steps).epoch, plain(steps, USUAL)
    seen = {begin: source(steps, common)}

    migrate(steps, {name: ("-80", "80-") if name == TWO else ("-80",) for name in TABLES})
    # A row that the new table never had goes with the old one.
    steps.sql("-80", *of(USUAL, ["INSERT INTO {t} (id, n) VALUES (50, 5)"]))
    steps.run()
    seen[newest(steps).epoch] = before = source(steps, common)
    for name in TABLES:
        steps.sql("80-" if name == TWO else "-80", *of(name, [CUT_OVER]))
    steps.sql(
        "-80", *of(USUAL, ["UPDATE {t} SET n = n + 1 WHERE id = 6", "INSERT INTO {t} VALUES (11, 1, 'x')"])
    )
    steps.sql("80-", *of(USUAL, ["DELETE FROM {t} WHERE id = 5", "REPLACE INTO {t} (id, n) VALUES (77, 7)"]))
    steps.sql("x", *of(TWO, ["UPDATE {t} SET n = 3 WHERE id = 3"]))
    must_wait(steps, before, {name: name not in UNFIT and name != TWO for name in TABLES})

    for name, (statements, _, on) in WAITING.items():
        for shard in on:
            steps.sql(shard, *of(name, statements))
    steps.sql("-80", *of(TWO, [CUT_OVER, "INSERT INTO {t} VALUES (90, 9, 'x')"]))
    steps.sql("80-", *of(ANOTHER, LONGER))
    steps.run()
    steps.sql("80-", *of(ANOTHER, [FIRST_CHUNK, SECOND_CHUNK, CUT_OVER]))
    steps.run()
    must_be_rows(lake(steps, common), before)
    assert next(one for one in newest(steps).stale if one.table.name == TWO).settles
    settled(steps.feed)
    for name, (statements, is_copied, on) in WAITING.items():
        for shard in ALL if is_copied else ():
            if shard not in on:
                steps.sql(shard, *of(name, statements))
    for name, made in UNFIT.items():
        for shard in ("80-", "x"):
            steps.sql(shard, *of(name, [*made, FIRST_CHUNK, SECOND_CHUNK, CUT_OVER]))
    steps.renew(*PROOF)
    must_be_equal(steps, common)
    seen[newest(steps).epoch] = source(steps, common)

    steps.everywhere(
        *of(USUAL, ["DELETE FROM {t} WHERE id IN (1, 77)", "REPLACE INTO {t} (id, n) VALUES (4, 4)"])
    )
    steps.run()
    must_be_equal(steps, common)
    must_go_on(steps, common)
    epochs = [one for one in manifests(steps) if one.epoch > begin]
    assert copied(epochs, TABLES) == {*UNFIT, ANOTHER, *(name for name, case in WAITING.items() if case[1])}
    must_tell(steps, USUAL, begin, past)
    for epoch, rows in seen.items():
        must_be_rows(lake(steps, common, epoch), rows)


def must_wait(steps: Steps, before: dict[str, list[tuple[object, ...]]], settles: dict[str, bool]) -> None:
    """Run the feed: all tables are seen as `before`, and wait for a settle or for something else."""
    steps.run()
    assert {one.table.name: one.settles for one in newest(steps).stale} == settles
    must_be_rows(lake(steps, dict.fromkeys(settles, COMMON)), before)


def must_go_on(steps: Steps, common: Mapping[str, tuple[str, ...]]) -> None:
    """The other shards follow, one after the other, and no row of them is copied either."""
    for shard, tables in (("80-", (USUAL,)), ("x", (USUAL, TWO))):
        migrate(steps, dict.fromkeys(tables, (shard,)))
        before = source(steps, dict.fromkeys(tables, COMMON))
        steps.sql(shard, *(sql for name in tables for sql in of(name, [CUT_OVER])))
        steps.run()
        assert stale(newest(steps)) == {*tables}
        must_be_rows(lake(steps, dict.fromkeys(tables, COMMON)), before)
        settled(steps.feed)
        must_be_rows(lake(steps, dict.fromkeys(tables, COMMON)), before)
        steps.run()
        must_be_equal(steps, common)
        steps.everywhere(
            *of(USUAL, ["REPLACE INTO {t} (id, n) VALUES (1, 1), (5, 5)", "DELETE FROM {t} WHERE id = 4"])
        )
        steps.run()
        must_be_equal(steps, common)
    for _ in range(2):
        must_be_equal(steps, {**common, USUAL: COLUMNS, TWO: COLUMNS})
        settled(steps.feed)
