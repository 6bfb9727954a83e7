"""The swap of gh-ost and pt-online-schema-change is followed: the shadow table was born in the log, and nothing is
copied from the source."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.promises.exact.conftest import Servers
from tests.promises.exact.manifests import (
    copied,
    lake,
    manifests,
    must_be_equal,
    must_be_rows,
    must_go_on,
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
from tests.promises.exact.steps import Steps, run_here
from tests.world.settled import settled

BEHIND = "UPDATE {t} SET m = 'new2' WHERE id > 6"
TOOL = (MAKE, [FIRST_CHUNK], [*MEANWHILE, SECOND_CHUNK])
# What ends a tool's work, on all shards in one epoch.
FOLLOWED = {
    "at_once": [
        "REPLACE INTO {g} (id, n) VALUES (4, 41)", CUT_OVER, "UPDATE {t} SET n = n + 1 WHERE id = 5",
        "INSERT INTO {t} VALUES (9, 9, 'new')",
    ],
    "in_two": ["RENAME TABLE {t} TO {d}", "RENAME TABLE {g} TO {t}", BEHIND],
    "dropped": ["DROP TABLE {t}", "RENAME TABLE {g} TO {t}", BEHIND],
    "further": [f"{CUT_OVER}, {{d}} TO {{d}}er", "ALTER TABLE {t} ADD INDEX (n)", BEHIND, "DROP TABLE {d}er"],
    "written": ["UPDATE {t} SET n = 51 WHERE id = 5", "REPLACE INTO {g} (id, n) VALUES (5, 51)", CUT_OVER],
    "emptied": [CUT_OVER],
}  # fmt: skip
# What one tool does besides in the last epoch before.
EMPTIES = ["TRUNCATE TABLE {g}", FIRST_CHUNK, SECOND_CHUNK]
# All of it, epoch by epoch, where the table is to be copied.
IN_DOUBT: dict[str, tuple[list[str], ...]] = {
    "one_epoch": ([], [], [], [*MAKE, FIRST_CHUNK, SECOND_CHUNK, CUT_OVER]),
    "altered_with_rows": (
        [*MAKE], [FIRST_CHUNK, "ALTER TABLE {g} MODIFY n DECIMAL(20,2)"], [SECOND_CHUNK], [CUT_OVER],
    ),
    "made_with_rows": (
        ["CREATE TABLE {g} AS SELECT * FROM {t}", "ALTER TABLE {g} ADD PRIMARY KEY (id), ADD m INT"], [], [],
        [CUT_OVER],
    ),
    "altered_in_the_epoch": (
        [*MAKE], [FIRST_CHUNK], [SECOND_CHUNK],
        ["ALTER TABLE {g} DROP m", "ALTER TABLE {g} ADD m VARCHAR(9)", CUT_OVER],
    ),
    "altered_behind": (
        [*MAKE], [FIRST_CHUNK], [SECOND_CHUNK], [CUT_OVER, "ALTER TABLE {t} MODIFY n DECIMAL(20,2)"],
    ),
    "swapped_back": (
        [*MAKE], [FIRST_CHUNK], [SECOND_CHUNK],
        [CUT_OVER, "RENAME TABLE {t} TO {t}_x, {d} TO {t}, {t}_x TO {d}", "ALTER TABLE {t} ADD m INT"],
    ),
}  # fmt: skip
# A tool's work is given up, and begins once more; a shard swaps long before the other.
GIVEN_UP, LONG = "given_up", "long_before"
ALL = (*FOLLOWED, *IN_DOUBT, GIVEN_UP, LONG)


def begun(directory: Path, servers: Servers, schema: str, patch: pytest.MonkeyPatch, *tables: str) -> Steps:
    """A feed that names each of its tables, and has caught up. Shadow tables are followed all the same."""
    run_here(patch)
    steps = Steps(directory, servers, schema)
    steps.set(tables=[f"{schema}.{name}" for name in (*tables, "other")])
    steps.everywhere(OTHER, *(sql for name in tables for sql in of(name, BEGIN)))
    steps.run()
    return steps


@pytest.mark.promise("the table swap of gh-ost or pt-online-schema-change is followed without a copy")
def test_swaps_on_all_shards(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = begun(tmp_path, servers, fresh_schema(*servers.values()), monkeypatch, *ALL)
    begin, swapped = newest(steps), (*FOLLOWED, GIVEN_UP, LONG)
    seen = {begin.epoch: source(steps, dict.fromkeys(ALL, COMMON))}
    both = ("-80", "80-")
    stages = [
        [sql for name in ALL for sql in of(name, IN_DOUBT[name][number] if name in IN_DOUBT else statements)]
        for number, statements in enumerate(TOOL)
    ]
    stages[-1] += of("emptied", EMPTIES)
    follow(steps, [dict.fromkeys(both, stage) for stage in stages], dict.fromkeys(swapped, both))
    assert newest(steps).tables == begin.tables, "nobody sees them"
    seen[newest(steps).epoch] = before = source(steps, dict.fromkeys(ALL, COMMON))
    settled(steps.feed)

    for name in ALL:
        steps.everywhere(*of(name, IN_DOUBT[name][3] if name in IN_DOUBT else FOLLOWED.get(name, ())))
    steps.everywhere(*of(GIVEN_UP, ["DROP TABLE {g}", "UPDATE {t} SET n = 22 WHERE id = 2"]))
    steps.sql("-80", *of(LONG, [CUT_OVER, "UPDATE {t} SET n = n + 5"]))
    steps.run()
    must_be_equal(steps, {**dict.fromkeys(FOLLOWED, COLUMNS), GIVEN_UP: COMMON})
    assert shadows(steps) == {LONG: ("80-",)}
    assert not stale(newest(steps)) & {*FOLLOWED, GIVEN_UP}
    for number in range(2):
        write = ["UPDATE {t} SET n = 1 WHERE id = 1", "UPDATE {g} SET n = 1 WHERE id = 1"]
        steps.sql("80-", *of(LONG, write))
        steps.sql("-80", *of(LONG, [f"INSERT INTO {{t}} VALUES (10{number}, {number}, 'late')"]))
        steps.run()
        must_be_rows(lake(steps, {LONG: COMMON}), {LONG: before[LONG]})

    assert files_beside(steps, GIVEN_UP)
    settled(steps.feed)
    assert not files_beside(steps, GIVEN_UP)
    steps.sql("80-", *of(LONG, [CUT_OVER]))
    follow(steps, [dict.fromkeys(both, of(GIVEN_UP, stage)) for stage in TOOL], {GIVEN_UP: both})
    steps.everywhere(*of(GIVEN_UP, [CUT_OVER]))
    steps.renew(*PROOF)
    must_be_equal(steps, dict.fromkeys(ALL, COLUMNS))
    assert not shadows(steps)

    steps.everywhere(*(f"UPDATE {name} SET n = n + 1 WHERE id = 1" for name in ALL))
    steps.everywhere(*(f"INSERT INTO {name} (id, n) VALUES (8, 80)" for name in ALL))
    steps.run()
    must_be_equal(steps, dict.fromkeys(ALL, COLUMNS))
    settled(steps.feed)
    steps.everywhere(*(f"DELETE FROM {name} WHERE id = 2" for name in ALL))
    steps.run()
    must_be_equal(steps, dict.fromkeys(ALL, COLUMNS))
    for epoch, rows in seen.items():
        must_be_rows(lake(steps, dict.fromkeys(ALL, COMMON), epoch), rows)
    epochs = [one for one in manifests(steps) if one.epoch > begin.epoch]
    assert copied(epochs, ALL) == {*IN_DOUBT}


def files_beside(steps: Steps, name: str) -> list[Path]:
    """The files of what was filled beside a table."""
    root = Path(str(steps.feed.sink.path))
    return list(root.glob(f"_catchment/tail-*/{steps.schema}/{name}/**/*.parquet"))


def test_what_a_session_does_to_a_shadow_alone_ends_no_run(
    logging_text: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions = {"as_text": "binlog_format = STATEMENT", "lacking": "binlog_row_image = MINIMAL"}
    steps = begun(tmp_path, logging_text, fresh_schema(*logging_text.values()), monkeypatch, *sessions)
    begin = newest(steps).epoch
    made, both = "CREATE TABLE {g} (id INT PRIMARY KEY, n INT, m INT)", ("-80", "80-")
    stages = [[sql for name in sessions for sql in of(name, [part])] for part in (made, FIRST_CHUNK)]
    follow(steps, [dict.fromkeys(both, stage) for stage in stages], dict.fromkeys(sessions, both))
    for name, session in sessions.items():
        steps.everywhere(f"SET SESSION {session}", *of(name, ["UPDATE {g} SET n = 5"]))
    steps.everywhere("INSERT INTO other VALUES (7)", *(f"UPDATE {name} SET n = n + 1" for name in sessions))
    steps.run()
    assert not shadows(steps)
    must_be_equal(steps, {"other": ("id",), **dict.fromkeys(sessions, COMMON)})
    exact = newest(steps).epoch
    steps.everywhere(*(sql for name in sessions for sql in of(name, [SECOND_CHUNK, CUT_OVER])))
    steps.everywhere("INSERT INTO other VALUES (8)")
    steps.run()
    must_go_on(steps, exact, sessions, {"other": ("id",)})
    steps.renew(*PROOF)
    must_be_equal(steps, dict.fromkeys(sessions, COLUMNS))
    epochs = [one for one in manifests(steps) if one.epoch > begin]
    assert copied(epochs, sessions) == sessions.keys()
