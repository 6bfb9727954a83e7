"""Ports that a run listens on."""

from pathlib import Path

from tests.layers.config.test_file import MINIMAL, faults_of, feed_of


def test_the_status_page_is_for_this_host_alone_and_has_a_port_of_its_own(tmp_path: Path) -> None:
    assert feed_of(tmp_path, MINIMAL).status.port is None
    assert feed_of(tmp_path, f"{MINIMAL}status: {{port: 8420}}").status.address == "127.0.0.1"
    both = f"{MINIMAL}status: {{port: 8420}}\nmetrics: {{port: 8420}}"
    (fault,) = faults_of(tmp_path, both)
    assert "status.port and metrics.port are the same" in fault
    assert (
        feed_of(tmp_path, both.replace("{port: 8420}\n", "{port: 8420, address: 0.0.0.0}\n")).status.port
        == 8420
    )
