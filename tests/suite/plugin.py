"""The suite's pytest plugin: options for tiers and slices, what a run draws, its order, and what it says at its end."""

import gc
import time
from collections import defaultdict
from fnmatch import fnmatch

import hypothesis.core
import pytest

from tests.suite import costs, drawn, order, reach
from tests.suite.repeat import repeated_alone
from tests.suite.slices import SLICES
from tests.suite.tiers import Tier, file_of, slice_of_item, tier_of, unit_of
from tests.world.patience import SLOWNESS

_BY_COMMIT = "commit"

# Seconds by tier and unit, in the process that reports.
_taken: dict[tuple[str, str], float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What the targets of the Makefile ask for."""
    group = parser.getgroup("suite")
    group.addoption(
        "--tier", choices=[tier.value for tier in Tier], action="append", help="run these tiers alone"
    )
    group.addoption("--slice", metavar=f"1..{SLICES}|{_BY_COMMIT}", help="of the wide tests, run one slice")
    group.addoption(
        "--affected", type=float, default=0.0, metavar="SECONDS",
        help="beside the slice, wide tests that the newest commits can break, of so many recorded seconds at most",
    )  # fmt: skip
    group.addoption("--no-repeat", action="store_true", help="do not repeat failed tests alone")
    group.addoption("--record-costs", action="store_true", help="write tests/suite/costs.tsv")


def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis draws from the run's seed, so that each commit tries other examples and repeats its own."""
    seed = drawn.run_seed()
    if config.getoption("hypothesis_seed", None) is None:
        hypothesis.core.global_force_seed = seed  # type: ignore[assignment]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """How to repeat the run, and what the machine is like."""
    if config.getoption("--tier") is None:
        return []
    lines = [f"seed {drawn.run_seed()} (repeat with {drawn.VARIABLE}={drawn.run_seed()})"]
    if (number := _slice(config)) is not None:
        lines.append(f"slice {number} of {SLICES} (repeat with: make test-slice SLICE={number})")
    cpu = time.process_time()
    for _ in range(20_000_000):
        pass
    cpu = time.process_time() - cpu
    lines.append(
        f"20 million turns of a loop take {cpu:.2f} s of CPU; waits are {SLOWNESS:.1f} times as patient"
    )
    return lines


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the options do not ask for, and arrange the rest."""
    for item in items:
        item.user_properties += [
            ("test", item.nodeid),
            ("tier", tier_of(item).value),
            ("unit", unit_of(item)),
        ]
    chosen = _chosen(config, items)
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        order.arrange(items, costs.recorded(), worker["workercount"])


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: Python's collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


def _slice(config: pytest.Config) -> int | None:
    """The slice that is asked for; by the commit, where that is to decide."""
    asked = config.getoption("--slice")
    if asked is None:
        return None
    number = drawn.drawn("slice", SLICES) + 1 if asked == _BY_COMMIT else int(asked)
    if not 1 <= number <= SLICES:
        raise pytest.UsageError(f"--slice {asked}: there are slices 1 to {SLICES}")
    return number


def _chosen(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    asked = config.getoption("--tier")
    if asked is None:
        return list(items)
    tiers = {Tier(name) for name in asked}
    number = _slice(config)
    wide = [item for item in items if tier_of(item) is Tier.WIDE]
    skipped: set[pytest.Item] = set()
    if number is not None:
        skipped = {item for item in wide if slice_of_item(item) != number}
        skipped -= _affected(wide, config.getoption("--affected"))
    return [item for item in items if tier_of(item) in tiers and item not in skipped]


def _affected(wide: list[pytest.Item], budget: float) -> set[pytest.Item]:
    """The wide tests that the newest commits can break: those whose inputs changed, then the likeliest within the
    budget."""
    if not budget:
        return set()
    changed = reach.changed_by()
    found = {item for item in wide if _input_changed(item, changed)}
    ranked = []
    for item in wide:
        rank = reach.reach_of(file_of(item.nodeid)).rank(changed)
        if rank is not None:
            ranked.append((rank, drawn.drawn(item.nodeid, 1 << 32), item))
    known = costs.recorded()
    for _, _, item in sorted(ranked, key=lambda one: one[:2]):
        if (budget := budget - known.of(unit_of(item))) < 0:
            break
        found.add(item)
    return found


def _input_changed(item: pytest.Item, changed: reach.Changed) -> bool:
    """Whether one of the files that a test is about (`@pytest.mark.inputs`, patterns of paths) changed."""
    patterns = [pattern for mark in item.iter_markers("inputs") for pattern in mark.args]
    return any(fnmatch(path, pattern) for path in changed.paths for pattern in patterns)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what each test took; xdist brings the reports of all its processes here."""
    properties = {name: str(value) for name, value in report.user_properties}
    _taken[properties["tier"], properties["unit"]] += report.duration


class _Failures:
    """Names each test that fails when it does: a whole run takes a quarter of an hour."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has failed, or what it needs could not be set up."""
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"RED {dict(report.user_properties)['test']} ({report.when})")


def pytest_sessionstart(session: pytest.Session) -> None:
    """The process that reports has a terminal; those of xdist have none."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        session.config.pluginmanager.register(_Failures(terminal))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Record the costs, and repeat what failed."""
    if config.getoption("--record-costs"):
        costs.write(_taken)
    failed = [
        str(dict(report.user_properties)["test"])  # xdist adds the group to `nodeid`
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, [])
        if isinstance(report, pytest.TestReport)
    ]
    if not failed or config.getoption("--no-repeat") or config.getoption("--tier") is None:
        return
    terminalreporter.section(f"repeated alone ({drawn.VARIABLE}={drawn.run_seed()})")
    for line in repeated_alone(config.rootpath, list(dict.fromkeys(failed))):
        terminalreporter.write_line(line)
