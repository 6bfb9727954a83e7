"""What a feed file says of the sessions of a server, and when that is too few."""

from pathlib import Path

import pytest

from catchment.config.live import must_fit_sessions, with_setting
from catchment.model.errors import ConfigError
from catchment.model.sessions import Needs
from tests.layers.config.test_file import MINIMAL, faults_of, feed_of

VERIFIES = "\nverify: {every: 1h}\n"
CHECKED = "\ncopy: {groups_per_shard: 3, throttle: {threads_running: 30}}\n"
FLAGGED = "\ncopy: {throttle: {flag_file: wait, rows_per_second: 100}}\n"


def limited(count: object, text: str = MINIMAL) -> str:
    return text.replace("source:\n", f"source:\n  sessions_max: {count}\n")


@pytest.mark.parametrize(
    ("more", "least"),
    [("", 3), (FLAGGED, 3), (VERIFIES, 5), (CHECKED, 5), (CHECKED + VERIFIES, 8)],
)
def test_the_smallest_number_is_said(tmp_path: Path, more: str, least: int) -> None:
    feed = feed_of(tmp_path, limited(least) + more)
    assert feed.session_needs().least == least
    assert [endpoint.counted for endpoint in feed.endpoints()] == [True] * len(feed.endpoints())
    faults = faults_of(tmp_path, limited(least - 1) + more)
    assert any(
        f"source.sessions_max: {least - 1} is too few, {least} is the least" in fault for fault in faults
    )


def test_without_it_nothing_is_counted(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, MINIMAL)
    assert feed.source.sessions_max is None
    assert not any(endpoint.counted for endpoint in feed.endpoints())
    assert feed_of(tmp_path, MINIMAL + CHECKED).session_needs() == Needs(beside=3, groups=3)


def test_a_task_is_not_to_run_twice(tmp_path: Path) -> None:
    twice = limited(9) + '\nspark: {conf: {spark.speculation: "true"}}\n'
    assert any("spark.speculation runs a task twice" in fault for fault in faults_of(tmp_path, twice))


def test_a_setting_that_changes_live_takes_no_session_more(tmp_path: Path) -> None:
    name = "copy.throttle.threads_running"
    feed = feed_of(tmp_path, limited(9))
    with pytest.raises(ConfigError, match=f"{name} needs a session more on each shard"):
        must_fit_sessions(feed, with_setting(feed, name, "30"), name)
    free = feed_of(tmp_path, MINIMAL)
    must_fit_sessions(free, with_setting(free, name, "30"), name)
    checked = feed_of(tmp_path, limited(9) + CHECKED)
    without = with_setting(checked, name, "off")
    must_fit_sessions(checked, without, name)
    must_fit_sessions(checked, with_setting(without, name, "50"), name)
