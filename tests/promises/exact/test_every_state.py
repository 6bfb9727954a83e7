"""Runs die again and again while tables of one feed stand in every state: each goes on where it stood."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.epoch import Manifest
from catchment.state.faults import Fault
from tests.promises.exact.every_state import (
    BEGIN_WITH,
    ENDS,
    LIVES,
    begun,
    dies,
    first_round,
    given,
    second_round,
)
from tests.promises.exact.kept_past import Row, exact_since, expected, must_be, must_tell, plain
from tests.promises.exact.kept_past import source as shards_have
from tests.promises.exact.manifests import (
    by_text,
    copied,
    ever_stale,
    generations,
    lake,
    manifests,
    must_be_chain,
    must_be_equal,
    must_be_rows,
    newest,
    outside,
    source,
)
from tests.promises.exact.steps import Steps, run_here
from tests.world.marks import by, marks_allowed
from tests.world.servers.chosen import chosen_server
from tests.world.settled import settled

PROOF = ("INSERT INTO followed VALUES (30, 1)", "DELETE FROM followed WHERE id = 30")


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, PrivateServer]]:
    """Two shards whose logs hold a statement as text, and are purged."""
    with chosen_server(server_id=171) as first, chosen_server(server_id=172) as second:
        yield {"-80": first, "80-": second}


FAULTS = [
    pytest.param(
        Fault.AFTER_MANIFEST,
        marks=pytest.mark.promise("a run killed at any step is resumed, whatever state its tables are in"),
    ),
    Fault.AFTER_PLAN,
    Fault.DURING_READ,
    Fault.BETWEEN_APPLIES,
    Fault.AFTER_APPLY,
    Fault.AFTER_EPOCH_ROW,
    pytest.param(Fault.AFTER_STAGE, marks=pytest.mark.mariadb("marks are of MariaDB alone")),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_runs_that_die_are_gone_on_with(
    own: dict[str, PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
) -> None:
    run_here(monkeypatch)
    copying = {}
    if fault is Fault.AFTER_STAGE:
        copying = by("watermark", marks_allowed(own.values(), fresh_schema(*own.values())))
    steps = begun(tmp_path, own, fresh_schema(*own.values()), copying)
    begin = newest(steps)
    seen = {begin.epoch: source(steps, BEGIN_WITH)}
    past = {name: plain(steps, name) for name in ("aged", "followed", "swapped_apart")}

    first_round(steps)
    deaths = [dies(steps, fault)]
    settled(steps.feed)
    second_round(steps)
    deaths.append(dies(steps, fault))
    steps.enter("late", *PROOF)
    steps.renew(*PROOF)
    must_have_lived(steps, begin)
    must_be_exact(steps)
    must_be(plain(steps, "aged"), of_history(steps, past["aged"]))
    for name, rows in past.items():
        must_tell(steps, name, begin.epoch, rows)

    seen[newest(steps).epoch] = source(steps, ENDS)
    assert min(deaths) > 0, deaths
    assert sum(deaths) > 5, deaths
    must_be_chain(manifests(steps))
    for epoch, wanted in seen.items():
        columns = BEGIN_WITH if epoch == begin.epoch else ENDS
        must_be_rows(lake(steps, columns, epoch), wanted)


def must_have_lived(steps: Steps, begin: Manifest) -> None:
    """Each table has had as many copies as something began one, the others were exact at every epoch, and each order
    was carried out."""
    epochs = [one for one in manifests(steps) if one.epoch > begin.epoch]
    new = {name: len(set(generations(epochs, name)) - set(generations([begin], name))) for name in ENDS}
    wanted = {name: LIVES[name].renewed + (name in ("born", "late")) for name in ENDS}
    assert new == wanted
    assert ever_stale(epochs) == {name for name, life in LIVES.items() if life.renewed} | {"dropped"}
    assert outside(epochs[-1]) == {"dropped"}
    assert not copied(epochs, [name for name in ENDS if LIVES[name].told])
    answers = [kept.answer for kept in given(steps)]
    assert len(answers) > 2
    assert all(one is not None and one.done for one in answers), answers


def must_be_exact(steps: Steps) -> None:
    """Every reader has the source's rows, before a settle and behind it."""
    must_be_equal(steps, ENDS)
    settled(steps.feed)
    must_be_equal(steps, ENDS)
    wanted = source(steps, ENDS)
    found = {
        name: by_text(tuple(row[c] for c in ("_shard", *columns)) for row in plain(steps, name))
        for name, columns in ENDS.items()
        if name != "aged"
    }
    must_be_rows(found, {name: wanted[name] for name in found})


def of_history(steps: Steps, before: list[Row]) -> list[Row]:
    """What the table that keeps its past has, whose rows of `before` became those of now while it was copied again."""
    return expected("history", before, shards_have(steps, "aged", "n"), exact_since(steps, "aged"))
