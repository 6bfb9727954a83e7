"""What stops a feed is set aside by an order that names its place: what it may have changed is stale, and renewed."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.dump import skip
from catchment.model.errors import CatchmentError, CorruptLog, Unsupported
from catchment.watch.status import OrderStatus
from tests.promises.exact.manifests import manifests, newest
from tests.promises.exact.night import status_of
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import chosen_server

PROOF = ("INSERT INTO other VALUES (NULL)", "INSERT INTO other VALUES (NULL)")
# Without SHOW VIEW and TRIGGER nobody sees what it leads to.
STATEMENT = (
    "SET SESSION binlog_format = STATEMENT",
    "UPDATE elsewhere.x SET n = n + 1",
    "SET SESSION binlog_format = ROW",
)


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, PrivateServer]]:
    """Two shards whose logs these tests poison."""
    with chosen_server(server_id=173) as first, chosen_server(server_id=174) as second:
        for server in (first, second):
            server.sql("CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.x (n INT)")
        yield {"-80": first, "80-": second}


@pytest.fixture
def steps(
    own: dict[str, PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two tables that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, own, fresh_schema(*own.values()))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO other VALUES (1)",
    )
    begun.run()
    return begun


def stopped(steps: Steps, kind: type[CatchmentError]) -> CatchmentError:
    """Run the feed, which has to end; by what."""
    with pytest.raises(kind) as ended:
        steps.run()
    assert f"catchment dump skip FEED.yaml --shard {ended.value.shard} --at {ended.value.place}" in str(
        ended.value
    )
    return ended.value


def on_record(steps: Steps, number: int) -> OrderStatus:
    """An order as the status has it."""
    return next(one for one in status_of(steps.feed).orders if one.number == number)


def renewed(steps: Steps) -> None:
    """Both tables are equal once nothing is stale."""
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")


@pytest.mark.promise(
    "an order skips a statement that stops a feed, and the tables that it may have changed are copied again"
)
def test_the_tables_that_it_touched_are_copied_again(steps: Steps) -> None:
    before = newest(steps).epoch
    steps.sql(
        "-80",
        "INSERT INTO other VALUES (NULL)",
        *STATEMENT,
        "DELETE FROM t WHERE id = 1",
        *STATEMENT,
        *PROOF,
    )
    error = stopped(steps, Unsupported)
    assert error.shard == "-80"
    assert newest(steps).epoch == before
    must_be_refused(steps, error)
    kept = skip(steps.file, error.shard, error.place, wait=0)
    assert kept.answer is None
    assert kept.order.user
    renewed(steps)
    assert on_record(steps, kept.number).state == "done"
    assert f"stale since then: {steps.schema}.other, {steps.schema}.t" in on_record(steps, kept.number).answer
    now = [one for one in manifests(steps) if one.epoch > before]
    stale = {(one.table.name, one.epoch) for manifest in now for one in manifest.stale}
    assert stale == {("t", before), ("other", before)}
    at = newest(steps).cut.positions["-80"].at
    kept = skip(steps.file, "-80", f"{at.file}:{at.offset}", wait=0)  # nothing stops there
    steps.everywhere("UPDATE t SET n = n + 1")
    steps.must_be_equal("t", "id", "n")
    assert on_record(steps, kept.number).state == "refused"
    assert not newest(steps).stale


def must_be_refused(steps: Steps, error: CatchmentError) -> None:
    """Orders for other places, which change nothing."""
    read = newest(steps).cut.positions["-80"].at
    behind = f"{read.file}:{read.offset - 1}"
    places = (behind, f"{read.file}:{read.offset + 1}", "another.000001:4", f"{read.file}:999999999")
    numbers = [skip(steps.file, "-80", place, wait=0).number for place in places]
    assert str(stopped(steps, Unsupported)) == str(error)
    found = [on_record(steps, number) for number in numbers]
    assert [one.state for one in found] == ["refused"] * len(numbers)
    said = [one.answer for one in found]
    assert "nothing there stops the feed: it is read to" in said[0]
    assert "that is not what stops the feed" in said[1]
    assert "has no such log" in said[2]
    assert error.place in said[3]
    assert not newest(steps).stale
    assert execute(["dump", "skip", str(steps.file), "--shard", "-80", "--at", "nowhere"]) == 2
    assert execute(["dump", "skip", str(steps.file), "--shard", "x", "--at", error.place]) == 2


def test_an_event_that_cannot_be_read_begins_the_shard_again(
    own: dict[str, PrivateServer], steps: Steps
) -> None:
    """A byte of it has changed on the server's disk. Nobody knows what was in it, so all tables are renewed."""
    exact = newest(steps).epoch
    server = own["-80"]
    file, begins = server.log_end()
    steps.sql(
        "-80", "UPDATE t SET n = 77", "UPDATE t SET n = n + 1", "FLUSH BINARY LOGS", "UPDATE t SET n = n + 1"
    )
    log = server.datadir / file
    damaged = bytearray(log.read_bytes())
    damaged[begins + 120] ^= 0xFF
    log.write_bytes(damaged)
    with suppress(AssertionError):
        stopped(steps, CorruptLog)
    error = stopped(steps, CorruptLog)
    assert error.place.startswith(f"{file}:")
    kept = skip(steps.file, error.shard, error.place, wait=0)
    steps.run()
    assert on_record(steps, kept.number).state == "done"
    renewed(steps)
    stale = {(one.table.name, one.epoch) for manifest in manifests(steps) for one in manifest.stale}
    assert stale == {("t", exact), ("other", exact)}
