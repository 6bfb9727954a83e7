"""What is asked of verify: a sample, or to go on where one stood that was interrupted."""

import json

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
from tests.promises.verify.damage import ROWS, damage, found, in_small_chunks, plain
from tests.world.engines import Here
from tests.world.planted import without


@pytest.mark.promise("verify --sample compares a random part of the chunks, which a seed repeats")
def test_a_sample_on_the_command_line(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    in_small_chunks(steps)
    plain(steps, "numbers", without("id", *range(1, ROWS)))
    seeded = ["--sample", "60", "--seed", "7"]
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    sampled = verify(steps.feed, endpoints, Here(), Choice(sample=Sample(60.0, 7)))
    assert 0 < sampled.differences < 2 * (ROWS - 1)
    assert execute(["verify", str(steps.file), *seeded, "--repair"]) == 0
    said = capsys.readouterr().out
    compared, parts = sampled.parts
    assert f"compared {compared} of {parts} parts, a sample of 60 % (--seed 7)" in said
    assert f"{sampled.differences} missing at the lake" in said
    assert "compared again: equal" in said
    assert execute(["verify", str(steps.file), *seeded]) == 0
    assert execute(["verify", str(steps.file)]) == VerifyDifference.exit_code, (
        "the other parts were mended, too"
    )
    assert execute(["verify", str(steps.file), "--seed", "7"]) == ConfigError.exit_code
    assert execute(["verify", str(steps.file), "--sample", "0"]) == ConfigError.exit_code


@pytest.mark.promise("an interrupted verify resumes where it was")
def test_one_that_is_interrupted_goes_on_where_it_stood(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In whatever wave it is interrupted: no chunk is read twice, and nothing that was found is forgotten."""
    in_small_chunks(steps)
    for table in ("numbers", "texts"):
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
        told = f"compared, {whole.found[of].missing} missing" if whole.found[of].total else "equal"
        assert f"{of}: {rows:,} rows {told}" in said
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
