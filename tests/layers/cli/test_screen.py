"""What a person sees of a run: on a small terminal with many tables, and in a log."""

import dataclasses
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from catchment.feed.verdict import Verdict
from catchment.model.cut import Cut
from catchment.model.epoch import Commit, TableDelta, TableShape
from catchment.model.progress import THROUGH, Basis, CopyProgress, Forecast, Progress
from catchment.model.refusal import Refusal
from catchment.model.shard import Copy
from catchment.model.table import TableId
from catchment.rewind.compare import Differences
from catchment.screen import comparing as comparing_module
from catchment.screen import progress as progress_module
from catchment.screen.comparing import VerifyView
from catchment.screen.display import screen
from catchment.screen.live import Screen
from catchment.screen.progress import RunView
from catchment.screen.rate import Rate
from catchment.screen.seen import Copying, Seen
from catchment.watch.report import Report, Rest
from tests.world import records

WIDTH, HEIGHT = 80, 24
SECOND = 1_000_000


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


def table(number: int) -> TableId:
    return TableId("many", f"t{number:03}")


def report(
    epoch: int,
    done: int,
    *,
    tables: int = 200,
    rows: int = 500,
    changes: int = 0,
    refused: tuple[Refusal, ...] = (),
) -> Report:
    """An epoch of a feed with two shards, `done` of whose tables are copied, and of the others `rows` of 1,000."""
    copies = tuple(
        Copy(table(n), done=n < done, rows=500 if n < done else rows // 2, rows_expected=500)
        for n in range(tables)
    )
    state = replace(records.manifest(1).cut.shards["-80"], copies=copies)
    shapes = tuple(TableShape(table(n), (), ("id",)) for n in range(tables))
    manifest = replace(
        records.manifest(1),
        window_us=1500,
        cut=Cut(epoch, epoch * SECOND, dict.fromkeys(("-80", "80-"), state)),
        shapes=shapes,
        deltas=(TableDelta(shapes[0], (), copied=rows),),
        changes=changes,
    )
    return Report(manifest, Commit(epoch, "", epoch * SECOND + SECOND // 2, {}), {}, {}, {}, refused)


def progress(*, done: int, tables: int = 200, copy: Forecast, log: Forecast = THROUGH) -> Progress:
    """Each table that is left has 600 rows of 1,000, and 40 more a second on each shard."""
    parts = [
        CopyProgress(shard, table(n), 300, 500, Basis.KEYS, 40.0, Forecast(2, 5, 9))
        for n in range(done, tables)
        for shard in ("-80", "80-")
    ]
    return Progress(0, tuple(parts), (), 4000.0, copy, log, copy)


def shown(view: RunView, width: int = WIDTH, height: int = HEIGHT) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Screen(lambda: view.seen))
    return capture.get().rstrip("\n").split("\n")


def a_view() -> RunView:
    return RunView("many", None)


def test_two_hundred_tables_fit_on_24_lines_with_the_summary_first(clock: Clock) -> None:
    view = a_view()
    view.observe(report(1, done=150, rows=200, changes=50))
    clock.now += 5
    view.observe(report(2, done=150, rows=600, changes=50))
    view.progressed(progress(done=150, copy=Forecast(4, 75, 100)))
    lines = shown(view)
    assert len(lines) <= HEIGHT - 1
    assert max(map(len, lines)) <= WIDTH
    assert lines[:4] == [
        "many: copying and following   lag 0.50 s   epoch 1970-01-01T00:00:00Z.0002",
        "  changes  100 in 2 epochs, 10 a second   cut window 1.5 ms",
        "  copied   150 of 200 tables, 800 rows",
        "  to go    20,000 rows, 0:01:15 (0:00:04 to 0:01:40)",
    ]
    assert lines[4].startswith("  many.t150 ━━━━━━━━━━━━────────  60%         1,000        80/s  0:00:05")
    assert lines[-1] == "  and 32 more tables"


def test_what_is_unknown_is_said_to_be_so(clock: Clock) -> None:
    view = a_view()
    view.observe(report(1, done=199, rows=600))
    assert shown(view)[3] == "  to go    400 rows"
    view.progressed(
        progress(
            done=199, copy=Forecast(why="many.t199 on -80: it is paused"), log=Forecast(9, 9, why="slow")
        )
    )
    lines = shown(view, 160)
    assert lines[3] == "  to go    400 rows, unknown: many.t199 on -80: it is paused"
    assert lines[4] == "  log      behind, caught up in 0:00:09 (0:00:09 or more: slow)"
    part = CopyProgress("-80", table(199), 300, None, Basis.UNKNOWN, None, Forecast(why="uncounted"))
    view.progressed(Progress(0, (part,), (), None, part.left, THROUGH, part.left))
    lines = shown(view, 160)
    assert lines[3] == "  to go    at least 0 rows, unknown: uncounted"
    assert lines[4].split()[-4:] == ["?", "600", "?/s", "unknown"]


def test_tables_that_are_copied_take_no_line_of_their_own(clock: Clock) -> None:
    view = a_view()
    view.observe(report(1, done=200))
    assert shown(view)[2:] == ["  copied   all 200 tables, 500 rows"]


def test_what_is_wrong_stands_above_the_tables_and_never_pushes_the_summary_out(clock: Clock) -> None:
    view = a_view()
    reason = "shard -80: a session locks the table, " + "and that is told at some length, " * 5
    refused = tuple(Refusal("-80", table(n), reason, 40) for n in range(9))
    view.observe(report(1, done=0, refused=refused))
    lines = shown(view)
    assert len(lines) <= HEIGHT - 1
    assert lines[0].startswith("many: copying")
    assert lines[4].startswith("! many.t000 is not copied yet on shard -80")
    assert "! and 7 more: catchment status" in lines
    assert any(line.startswith("  many.t") for line in lines)
    view.at_rest(Rest(0))
    assert not any(line.startswith("!") for line in shown(view))


def test_the_start_says_what_is_done_and_for_how_long(clock: Clock) -> None:
    view = a_view()
    view.doing("starting Spark")
    clock.now += 75
    assert shown(view) == ["many: starting Spark (0:01:15)"]


def test_a_log_has_a_line_for_what_is_new_and_else_one_in_ten_seconds(clock: Clock) -> None:
    lines: list[str] = []
    view = RunView("many", lines.append)
    view.doing("starting Spark")
    for epoch in range(1, 31):
        clock.now += 1
        refused = (Refusal("-80", table(7), "it is locked", 20),) if epoch == 25 else ()
        view.observe(report(epoch, done=199 if epoch < 15 else 200, changes=1, refused=refused))
    assert lines[0] == "many: starting Spark"
    assert lines[1].startswith(
        "many: epoch 1970-01-01T00:00:00Z.0001, lag 0.50 s, 1 changes, 199 of 200 tables, 500 rows; "
    )
    assert "many: epoch 1970-01-01T00:00:00Z.0015, lag 0.50 s, 15 changes, 7,500 rows copied" in lines
    assert not any("many.t007" in line for line in lines), "whoever meets it logs it, once"
    assert len(lines) < 12


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rate = Rate()
    assert rate.rate(0) == 0
    for second in range(100):
        rate.add(second, 1000 * min(second, 50))
    assert rate.rate(99) == 0
    rate.add(100, 60_000)
    assert rate.rate(100) == pytest.approx(1000, rel=0.2)
    assert rate.rate(200) == 0


forecasts = st.builds(
    Forecast,
    st.just(1.0),
    st.none() | st.floats(1, 1e9),
    st.none() | st.floats(1, 1e9),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=99),
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)
copies = st.builds(
    Copying,
    texts,
    st.integers(0, 10**12),
    st.none() | st.integers(0, 10**12),
    st.none() | st.floats(0, 1e9, allow_nan=False),
    forecasts,
)


@settings(max_examples=40)
@given(
    st.lists(copies, max_size=40),
    st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=300), max_size=20),
    st.integers(10, 200),
    st.integers(1, 60),
    st.sampled_from(["", "7710838160413949960"]),
    forecasts,
)
def test_it_fits_any_terminal(
    copying: list[Copying], wrong: list[str], width: int, height: int, epoch: str, forecast: Forecast
) -> None:
    seen = dataclasses.replace(
        Seen("many", "starting Spark", copy=forecast, log=forecast, keys="p pause   r resume   q end"),
        epoch=epoch,
        tables=len(copying),
        copying=tuple(copying),
    )
    lines = screen(dataclasses.replace(seen, wrong=tuple(wrong)), width, height)
    assert 1 <= len(lines) <= height
    assert all(line.cell_len <= width for line in lines)
    assert lines[0].plain.startswith("many: ")


def test_verify_says_how_far_it_has_come(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing_module, "time", clock)
    console = Console(file=io.StringIO(), force_terminal=False, width=WIDTH)
    view = VerifyView(console, {table(1): 600_000, table(2): 400_000})
    for rows in range(0, 1_000_000, 100_000):
        view.observe(Verdict({table(1): rows}, {table(1): Differences(changed=2)} if rows > 800_000 else {}))
        clock.now += 2
    file = console.file
    assert isinstance(file, io.StringIO)
    assert file.getvalue().splitlines() == [
        "500,000 of about 1,000,000 rows compared, 50,000 a second, 0:00:10 left, no difference",
    ]
    assert str(view.__rich__()).endswith("0:00:02 left, 2 keys differ")
