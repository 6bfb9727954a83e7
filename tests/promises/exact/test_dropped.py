"""Tables that every shard drops leave the feed, and come back with another table of their name."""

from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError
from tests.promises.exact.conftest import Servers
from tests.promises.exact.manifests import (
    born_on,
    carried,
    lake,
    manifests,
    must_be_equal,
    must_be_rows,
    newest,
    outside,
    source,
    stale,
)
from tests.promises.exact.steps import Steps, caught_up
from tests.promises.exact.test_stale import plain
from tests.world.settled import settled

PROOF = ("INSERT INTO other VALUES ()",)
MADE = ("CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "INSERT INTO {t} VALUES (1, 1), (2, 2)")
KEY = ("id", "n")
# What becomes of each: it goes for good, comes back as another, goes on one shard first, is made again on one first, is
# dropped and made again between two epochs, is renamed, and goes on one shard alone, where it comes back.
TABLES = ("gone", "back", "apart", "half", "at_once", "named", "returns")
OTHER = ("id", "w")


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has caught up and takes no new table but those that come back."""
    made = [sql.format(t=name) for name in TABLES for sql in MADE]
    made += ["CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", *PROOF]
    return caught_up(monkeypatch, tmp_path, servers, fresh_schema(*servers.values()), *made)


@pytest.mark.promise("a dropped table leaves the feed, and may be created again")
def test_they_leave_and_come_back(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    steps.set(new_tables="skip")
    begin, columns = newest(steps).epoch, dict.fromkeys(TABLES, KEY)
    rows = source(steps, columns)
    steps.everywhere(
        "UPDATE gone SET n = 0", *(f"DROP TABLE {name}" for name in ("gone", "back", "half")), *PROOF
    )
    steps.everywhere("CREATE TABLE never (id INT PRIMARY KEY)")
    again = (
        "CREATE TABLE {t} (id INT PRIMARY KEY, w VARCHAR(9))",
        "INSERT INTO {t} VALUES (7, 'new'), (8, 'x')",
    )
    steps.everywhere("DROP TABLE at_once", *(sql.format(t="at_once") for sql in again))
    steps.sql("-80", "DROP TABLE apart, returns", *PROOF)
    steps.run()
    assert {(one.table.name, one.epoch, one.dropped) for one in newest(steps).outside} == {
        (name, begin, True) for name in ("gone", "back", "half")
    }
    assert stale(newest(steps)) == {"apart", "returns"}
    assert carried(newest(steps)) == {"at_once", "named", "other"}
    as_of_then = {name: rows[name] for name in ("apart", "returns")}
    must_be_rows(lake(steps, dict.fromkeys(as_of_then, KEY)), as_of_then)
    must_be_equal(steps, {"at_once": OTHER, "named": KEY, "other": ("id",)})
    with pytest.raises(
        ConfigError, match=r"\.gone \(it was dropped, and its lake table stands as of .*\) as of epoch"
    ):
        catchment.read(steps.file, f"{steps.schema}.gone")
    must_be_rows(lake(steps, columns, begin), rows)
    settled(steps.feed)
    assert plain(steps, "gone", *KEY) == [rows["gone"]] * 2

    for name in ("back",):
        steps.everywhere(*(sql.format(t=name) for sql in again))
    steps.sql("80-", *(sql.format(t="half") for sql in again))
    steps.sql(
        "80-", "INSERT INTO apart VALUES (3, 3)", "DROP TABLE apart", "UPDATE returns SET n = 5", *PROOF
    )
    steps.sql("-80", *(sql.format(t="returns") for sql in MADE), *PROOF)
    steps.renew(*PROOF)
    assert outside(newest(steps)) == {"gone", "apart", "half"}
    said = f"{steps.schema}.apart was dropped on every shard; the lake keeps the rows of epoch {epoch_text(begin)}"
    assert said in caplog.messages
    steps.sql("-80", *(sql.format(t="half") for sql in again))
    steps.enter("half", *PROOF)
    came = dict.fromkeys(("back", "half", "at_once"), OTHER)
    must_be_equal(steps, {**came, "named": KEY, "returns": KEY, "other": ("id",)})
    for name in came:
        assert born_on(manifests(steps), name) == {"-80", "80-"}, name
    assert "never" not in carried(newest(steps))
    settled(steps.feed)
    assert plain(steps, "back", *OTHER) == [steps.source("back", *OTHER)] * 2
    must_be_rows(lake(steps, columns, begin), rows)

    steps.set(new_tables="carry", tables=[f"{steps.schema}.*", f"!{steps.schema}.never"])
    steps.everywhere("DROP TABLE back", "RENAME TABLE named TO away", *PROOF)
    steps.enter("away", *PROOF)
    assert outside(newest(steps)) == {"gone", "apart", "named", "back"}
    must_be_equal(steps, {"away": KEY})
    steps.everywhere("RENAME TABLE away TO named", "UPDATE named SET n = 9", *PROOF)
    steps.enter("named", *PROOF)
    steps.renew(*PROOF)
    must_be_equal(steps, {"named": KEY, "other": ("id",)})
    assert outside(newest(steps)) == {"gone", "apart", "away", "back"}


def test_every_table_may_go_and_come_back(steps: Steps) -> None:
    steps.everywhere(f"DROP TABLE {', '.join(TABLES)}, other")
    steps.run()
    assert newest(steps).tables == set()
    steps.run()
    assert not catchment.tables(steps.file)
    steps.everywhere("CREATE TABLE gone (id INT PRIMARY KEY, n INT)", "INSERT INTO gone VALUES (8, 8)")
    steps.enter("gone")
    must_be_equal(steps, {"gone": KEY})
