"""A Spark that cannot start: one line that names the cause, and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import EngineError, SourceError
from tests.promises.crash.conftest import MakeLife
from tests.world.log_lines import troubles
from tests.world.patience import PATIENCE_SECONDS

_CONTEXT = """
import json, sys
from pathlib import Path
from catchment.model.errors import EngineError
from catchment.engine.context import context
try:
    context("shop", sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]))
except EngineError as error:
    print(error)
"""


def started(tmp_path: Path, master: str, conf: dict[str, str], **environment: str) -> list[str]:
    """What a process of its own says of the error with which Spark does not start; no variable names a cluster."""
    own = {name: value for name, value in os.environ.items() if not name.endswith("_CONF_DIR")}
    log = tmp_path / "spark.log"
    log.write_text("java.lang.OldError: of a run before\n")
    done = subprocess.run(
        [sys.executable, "-c", _CONTEXT, master, json.dumps(conf), str(log)],
        env={**own, **environment}, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def java(directory: Path, script: str) -> str:
    """A JAVA_HOME whose java is this shell script."""
    file = directory / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(directory)


@pytest.mark.promise("when Spark cannot start, the run ends with exit code 7 and names the cause")
def test_a_java_that_is_not_there_or_too_old(tmp_path: Path) -> None:
    do = "install Java 17 or later, or set JAVA_HOME to one"
    absent = started(tmp_path, "local[1]", {}, JAVA_HOME=f"{tmp_path}/absent")
    assert absent == [
        f"Spark cannot start: no Java can be started as {tmp_path}/absent/bin/java (JAVA_HOME): "
        f"No such file or directory; {do}"
    ]
    old = java(tmp_path / "old", 'echo \'openjdk version "1.8.0_402"\' >&2; [ "$1" = -version ]')
    assert started(tmp_path, "local[1]", {}, JAVA_HOME=old) == [
        f"Spark cannot start: {old}/bin/java (JAVA_HOME) is Java 8, too old for Spark; {do}"
    ]


@pytest.mark.parametrize(
    ("conf", "cause"),
    [
        ({"spark.driver.memory": "much"}, "Invalid maximum heap size: -Xmxmuch"),
        ({"spark.task.cpus": "two"}, "The value 'two' in the config \"spark.task.cpus\" is invalid"),
    ],
    ids=["of Java", "of Spark"],
)
def test_a_setting_that_cannot_be(tmp_path: Path, conf: dict[str, str], cause: str) -> None:
    (said,) = started(tmp_path, "local[1]", conf)
    assert said.startswith("Spark cannot start: ")
    assert cause in said
    assert said.endswith(
        f"; its own messages are in {tmp_path}/spark.log; correct `spark.master` or `spark.conf` in the feed file, "
        "and start again"
    )


def test_a_cluster_without_its_settings(tmp_path: Path) -> None:
    (said,) = started(tmp_path, "yarn", {})
    assert "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set" in said


@pytest.mark.long
def test_a_master_that_does_not_answer(tmp_path: Path) -> None:
    """Spark asks it for a minute."""
    (said,) = started(tmp_path, "spark://127.0.0.1:1", {}, SPARK_LOCAL_IP="127.0.0.1")
    assert said.startswith(
        "Spark cannot start: the master spark://127.0.0.1:1 does not answer; its own messages"
    )


def test_every_command_that_needs_java_says_so(pair: dict[str, PrivateServer], live: MakeLife) -> None:
    life = live(pair, count=1)
    life.describe(engine="spark")
    for command, code, begin in (
        ("run", EngineError.exit_code, "catchment: Spark cannot start: no Java"),
        ("verify", EngineError.exit_code, "catchment: Spark cannot start: no Java"),
        ("doctor", SourceError.exit_code, ""),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "catchment.cli.main", command, str(life.file)],
            env={**os.environ, "JAVA_HOME": "/absent"}, capture_output=True, text=True, check=False,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        said = troubles(done.stderr)
        assert [line[: len(begin)] for line in said] == [begin] * (command != "doctor"), done.stderr
    assert "error    no Java can be started as /absent/bin/java (JAVA_HOME)" in done.stdout
    assert "do:   install Java 17 or later, or set JAVA_HOME to one" in done.stdout
