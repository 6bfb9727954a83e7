"""The protobuf that is published, and what is generated from it."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

from tests.tidy.sources import PACKAGE, ROOT
from tests.tidy.test_lock import PROJECT

PROTO = ROOT / "proto"
NAME = "catchment_stream/v1/stream"
COMMAND = "make protobuf"


def generated(directory: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"--python_out={directory}"]
    subprocess.run([*command, f"--pyi_out={directory}", f"{NAME}.proto"], check=True, cwd=PROTO)


def test_the_code_is_that_of_the_protobuf(tmp_path: Path) -> None:
    generated(tmp_path)
    for kind in ("py", "pyi"):
        made = (tmp_path / f"{NAME}_pb2.{kind}").read_text()
        assert (PACKAGE / f"serve/server/stream_pb2.{kind}").read_text() == made, COMMAND


def test_the_oldest_protobuf_that_is_allowed_runs_it() -> None:
    (needed,) = (
        Requirement(text)
        for text in PROJECT["project"]["optional-dependencies"]["serve"]
        if text.startswith("protobuf")
    )
    (least,) = (one.version for one in needed.specifier if one.operator == ">=")
    code = (PACKAGE / "serve/server/stream_pb2.py").read_text()
    assert f"Protobuf Python Version: {least}\n" in code
    assert needed.specifier.contains(version("protobuf"))
