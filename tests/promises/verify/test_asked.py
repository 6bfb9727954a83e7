"""What is asked of verify: a sample, or to go on where one stood that was interrupted."""

import json
import re

import pytest

from catchment.cli.main import execute
from catchment.feed import verify_progress
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.model.choice import Choice
from catchment.model.errors import INTERRUPTED, ConfigError, VerifyDifference
from catchment.model.sample import Sample
from catchment.readers.verify import VerifyTask
from catchment.screen.comparing import VerifyView
from tests.promises.exact.steps import Steps, run_here
from tests.promises.verify.damage import KEYS, ROWS, damage, found, plain
from tests.world.engines import Here
from tests.world.planted import without


@pytest.mark.wide
@pytest.mark.parametrize("percent", [10.0, pytest.param(50.0, marks=pytest.mark.wide)])
def test_a_sample_is_as_large_as_asked_and_the_same_again(steps: Steps, percent: float) -> None:
    plain(steps, "numbers", without("id", *range(1, ROWS)))
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}

    def sampled(seed: int) -> Verdict:
        return verify(steps.feed, endpoints, Here(), Choice(sample=Sample(percent, seed)))

    verdicts = [sampled(seed) for seed in range(12)]
    compared, parts = (sum(one.parts[side] for one in verdicts) for side in (0, 1))
    assert parts > 12 * 4 * 2
    assert 0.6 * percent < 100 * compared / parts < 1.5 * percent
    assert len({one.differences for one in verdicts}) > 3
    whole = found(steps)
    assert whole.parts[0] == whole.parts[1]
    assert 0 < sum(one.differences for one in verdicts) < 12 * whole.differences
    again = sampled(5)
    assert (again.found, again.rows, again.parts) == (
        verdicts[5].found,
        verdicts[5].rows,
        verdicts[5].parts,
    )


@pytest.mark.wide
def test_a_sample_on_the_command_line(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    plain(steps, "numbers", without("id", *range(1, ROWS)))
    assert execute(["verify", str(steps.file), "--sample", "60", "--seed", "7", "--repair"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"compared \d+ of \d+ parts, a sample of 60 % \(--seed 7\)", said)
    assert "compared again: equal" in said
    assert execute(["verify", str(steps.file), "--sample", "60", "--seed", "7"]) == 0
    assert execute(["verify", str(steps.file), "--seed", "7"]) == ConfigError.exit_code
    assert execute(["verify", str(steps.file), "--sample", "0"]) == ConfigError.exit_code


def test_one_that_is_interrupted_goes_on_where_it_stood(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In whatever wave it is interrupted: no chunk is read twice, and nothing that was found is forgotten."""
    for table in KEYS:
        damage(steps, table)
    monkeypatch.setattr(verify_progress, "SAVE_SECONDS", 0.0)
    here = run_here(monkeypatch)
    whole = found(steps)
    waves = [0]

    def interrupted(view: VerifyView, verdict: Verdict) -> None:
        waves[0] += 1
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VerifyView, "observe", interrupted)
        while execute(["verify", str(steps.file)]) == INTERRUPTED:
            assert waves[0] < 100
    said = capsys.readouterr().out
    assert waves[0] > 2
    assert "of these rows were compared before it was interrupted" in said
    for of, rows in whole.rows.items():
        assert f"{of}: {rows:,} rows compared, {whole.found[of].missing} missing" in said
    chunks = [
        c for tasks in here.done for task in tasks if isinstance(task, VerifyTask) for c in task.copy.chunks
    ]
    assert len(chunks) == len(set(chunks))
    assert execute(["verify", str(steps.file)]) == VerifyDifference.exit_code
    assert "interrupted" not in capsys.readouterr().out


def test_another_one_and_one_asked_again_begin_from_the_start(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify_progress, "SAVE_SECONDS", 0.0)

    def interrupted(view: VerifyView, verdict: Verdict) -> None:
        raise KeyboardInterrupt

    for more in ([], ["--again"], ["--table", f"{steps.schema}.texts"], ["--sample", "70", "--seed", "1"]):
        with monkeypatch.context() as patch:
            patch.setattr(VerifyView, "observe", interrupted)
            assert execute(["verify", str(steps.file)]) == INTERRUPTED
        assert execute(["verify", str(steps.file), "--json", *more]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["resumed_rows"] > 0) is (not more)
        assert all(table["missing"] == table["extra"] == table["changed"] == 0 for table in report["tables"])
