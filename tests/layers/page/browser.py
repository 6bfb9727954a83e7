"""A headless Chromium: what it makes of a page, and pictures of it. It reaches no host but 127.0.0.1."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.world.patience import PATIENCE_SECONDS

PROGRAM = "chromium"
WIDTH = 1280
# Time of the page, which goes on while it waits for nothing.
LOOK_MS = 6000


@dataclass(frozen=True, slots=True)
class Look:
    """`printed`: what the program wrote. `said`: its log, with what the page had to say on its console."""

    printed: str
    said: str


def look(url: str, *options: str, height: int = 900) -> Look:
    """Open a page for some seconds."""
    with tempfile.TemporaryDirectory(prefix="catchment-browser-") as home:
        command = [
            shutil.which(PROGRAM) or PROGRAM,
            "--headless",
            "--disable-gpu",
            "--disable-extensions",
            "--no-first-run",
            f"--user-data-dir={home}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--enable-logging=stderr",
            f"--virtual-time-budget={LOOK_MS}",
            f"--window-size={WIDTH},{height}",
            *(["--no-sandbox"] if os.getuid() == 0 else []),
            *options,
            url,
        ]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    return Look(ran.stdout, ran.stderr)


def document(url: str) -> Look:
    """The page as it stands after its scripts, as text."""
    return look(url, "--dump-dom")


def picture(url: str, file: Path, *, height: int) -> None:
    """A PNG of the page."""
    look(url, "--hide-scrollbars", f"--screenshot={file}", height=height)
