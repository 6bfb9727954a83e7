"""The status page in a headless Chromium: legible, alone in the world, and without markup from the feed."""

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import catchment
from tests.conftest import Shards
from tests.layers.page.browser import PROGRAM, WIDTH, document
from tests.layers.page.picture import take
from tests.layers.page.test_page import running, shown, wait
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import PATIENCE_SECONDS

# A name of a table that is markup, an attribute and a statement.
HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>"
BYTES_MAX = 200_000
PICTURE = Path(__file__).parents[3] / "docs" / "status-page.png"

pytestmark = [
    pytest.mark.wide,
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="needs chromium: `make test-wide` installs it"),
]


@pytest.fixture
def steps(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: int,
) -> Steps:
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.set(copy={"chunk_rows_max": 20, "group_time": "0s", "groups_per_shard": 1}, status={"port": port})
    name = HOSTILE.replace("`", "``")
    values = ", ".join(f"({key})" for key in range(1, 2001))
    begun.everywhere(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)", f"INSERT INTO `{name}` VALUES {values}")
    return begun


@pytest.fixture
def url(steps: Steps, port: int) -> Iterator[str]:
    with running(steps):
        wait("the table is shown", lambda: shown(port)["status"]["tables"])
        catchment.dump(steps.file, "pause", f"{steps.schema}.{HOSTILE}", wait=PATIENCE_SECONDS)
        wait("the order is shown", lambda: shown(port)["status"]["orders"])
        yield f"http://127.0.0.1:{port}/"


def size(file: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    head = file.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_what_a_browser_makes_of_it(url: str) -> None:
    """A name that is markup stays a name."""
    seen = document(url)
    assert (
        '<p id="health" role="status" aria-live="polite" class="warn">1 table is being copied ('
        in seen.printed
    )
    assert "unknown" in seen.printed, "a paused copy has no forecast"
    assert "it is paused" in seen.printed
    assert "<polyline" in seen.printed or "<text" in seen.printed
    assert '<th scope="row">-80' in seen.printed
    assert "Refused" not in seen.said, "the policy lets all through that the page needs"
    assert "Uncaught" not in seen.said
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in seen.printed
    assert "&lt;img src=x onerror=alert(1)&gt;" in seen.printed
    assert "<img" not in seen.printed
    assert seen.printed.count("<script") == 1
    assert '<script src="/page.js"' in seen.printed


def test_the_picture_of_the_docs(tmp_path: Path, port: int) -> None:
    """As `python -m tests.layers.page.picture docs/status-page.png` takes it."""
    take(tmp_path / "page.png", tmp_path, port, rows=6000)
    for file in (tmp_path / "page.png", PICTURE):
        assert file.stat().st_size < BYTES_MAX
        assert size(file)[0] == WIDTH
