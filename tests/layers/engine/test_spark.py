"""A Spark job that fails: whose fault it is, and what the log says of it."""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark import SparkContext

from catchment.engine import context as context_module
from catchment.engine.spark import SparkEngine
from catchment.epoch.work import SegmentTask
from catchment.model.errors import EngineError, ProgramFault, Retry
from catchment.model.source import Endpoint
from catchment.readers.verify import VerifyTask
from tests.world.engines import on_spark
from tests.world.patience import PATIENCE_SECONDS, until

_FOREIGN = """
import sys
from pyspark import SparkConf, SparkContext
from catchment.model.errors import ConfigError
from catchment.engine.context import context
conf = SparkConf().setMaster("local[1]").set("spark.ui.enabled", "false").set("spark.log.level", "OFF")
foreign = SparkContext(conf=conf.set("spark.io.encryption.enabled", sys.argv[1]))
try:
    same = context("shop", "local[1]", {}) is foreign
    print("taken" if same else "another")
except ConfigError as error:
    print(error)
print(foreign.parallelize([1, 2], 1).sum())
"""


@pytest.fixture
def engine(spark: SparkContext) -> SparkEngine:
    return on_spark(spark)


def test_a_fault_of_ours_in_a_task(
    engine: SparkEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tries = tmp_path / "tries"

    def broken(number: int) -> int:
        with tries.open("a") as file:
            file.write("x")
        raise ValueError(f"offset overflow in table {number}")

    with caplog.at_level(logging.ERROR), pytest.raises(ProgramFault) as raised:
        engine.each(broken, [7])
    assert str(raised.value) == (
        "a task failed by a fault of this program (ValueError: offset overflow in table 7); please report the "
        "traceback in the log"
    )
    assert (raised.value.retry, raised.value.exit_code) == (Retry.NEVER, 70)
    assert "in broken" in caplog.text
    assert "ValueError: offset overflow in table 7" in caplog.text
    assert tries.read_text() == "x"


@pytest.mark.parametrize("kind", [SegmentTask, pytest.param(VerifyTask, marks=pytest.mark.wide)])
def test_a_fault_of_ours_shows_no_password(
    engine: SparkEngine, kind: type, caplog: pytest.LogCaptureFixture
) -> None:
    assert hasattr(kind, "endpoint"), "by it a password is known"

    class WithEndpoint:
        endpoint = Endpoint("s", "db1", 3306, "catchment", "hunter2-secret")

    def broken(task: WithEndpoint) -> int:
        raise LookupError(f"cannot log in with {task.endpoint.password}")

    with pytest.raises(ProgramFault, match=r"cannot log in with \*\*\*") as raised:
        engine.each(broken, [WithEndpoint()])
    assert "hunter2" not in caplog.text + str(raised.value)


def test_a_worker_that_dies_is_spark_s_affair(engine: SparkEngine) -> None:
    def killed(number: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(EngineError, match="Spark gave up a job of 1 tasks") as raised:
        engine.each(killed, [7])
    assert raised.value.retry is Retry.SAME
    assert len(str(raised.value).splitlines()) == 1


def test_memory_that_is_short_may_be_there_later(engine: SparkEngine) -> None:
    def large(number: int) -> int:
        raise MemoryError(f"{number} bytes")

    with pytest.raises(EngineError, match=r"; MemoryError: 7 bytes$") as raised:
        engine.each(large, [7])
    assert raised.value.retry is Retry.SAME


def test_workers_that_do_not_have_this_program(engine: SparkEngine) -> None:
    """No other try can help: nothing is installed meanwhile."""

    class Absent:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return __import__, ("catchment_not_installed",)

    with pytest.raises(EngineError, match="No module named 'catchment_not_installed'") as raised:
        engine.each(id, [Absent()])
    assert raised.value.retry is Retry.NEVER


@pytest.mark.wide
@pytest.mark.parametrize(
    ("encrypted", "said"), [("true", "taken"), ("false", "would go through a file in clear")]
)
def test_a_spark_that_runs_already(encrypted: str, said: str) -> None:
    """Its tasks would hold our passwords; it is somebody's, and goes on."""
    done = subprocess.run(
        [sys.executable, "-c", _FOREIGN, encrypted],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert said in first
    assert second == "3"


def test_ctrl_c_is_ours_again_when_spark_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*arguments: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as pyspark.context does, before it fails
        raise EngineError("no Spark")

    def mine(*arguments: object) -> None: ...

    monkeypatch.setattr(context_module, "_started", fail)
    before = signal.signal(signal.SIGINT, mine)
    try:
        with pytest.raises(EngineError, match="no Spark"):
            context_module.context("shop", "local[1]", {}, tmp_path / "spark.log")
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def say_pid(path: str) -> None:
    """Say that this task has begun; it has no end."""
    Path(path).write_text(str(os.getpid()))
    threading.Event().wait()


@pytest.fixture
def _unwatched_collector() -> Iterator[None]:
    """Hypothesis watches the collector by a function of its own. An interrupt that meets that is lost."""
    watchers = list(gc.callbacks)
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(watchers)


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell that starts the suite in the background has it ignore interrupts (POSIX, asynchronous lists)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_unwatched_collector", "_interruptible")
def test_an_interrupt_meets_none_of_py4js_code(
    engine: SparkEngine, spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 200 interrupts that met Py4J's own code, one was lost. So only the engine's own thread calls Java for a job,
    and the thread that interrupts reach goes on at once."""
    callers: set[str] = set()
    send = GatewayClient.send_command

    def recorded(self: GatewayClient, command: str, *rest: Any, **options: Any) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):  # the collector may run in any thread
            callers.add(threading.current_thread().name)
        return send(self, command, *rest, **options)

    monkeypatch.setattr(GatewayClient, "send_command", recorded)

    def interrupt() -> None:
        until("the task has begun", (tmp_path / "begun").exists)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        engine.each(say_pid, [str(tmp_path / "begun")])
    assert callers == {"spark"}
    spark.cancelAllJobs()
    assert engine.each(len, ["ab"]) == [2]


def say_pid_and_wait(paths: tuple[str, str]) -> str:
    """Say that this task has begun; it ends once the second file is there."""
    begun, end = map(Path, paths)
    begun.write_text(str(os.getpid()))
    until("the task may end", end.exists)
    return "ended by itself"


def test_a_job_of_the_host_goes_on_when_ours_is_cancelled(
    engine: SparkEngine, spark: SparkContext, tmp_path: Path
) -> None:
    ours, theirs, end = (tmp_path / name for name in ("ours", "theirs", "end"))

    def host() -> list[str]:
        found: list[str] = spark.parallelize([(str(theirs), str(end))], 1).map(say_pid_and_wait).collect()
        return found

    with ThreadPoolExecutor(2) as threads:
        try:
            of_host = threads.submit(host)
            of_ours = threads.submit(engine.each, say_pid, [str(ours)])
            until("both jobs run", lambda: ours.exists() and theirs.exists())
            engine.cancel()
            with pytest.raises(EngineError, match="Spark gave up a job of 1 tasks"):
                of_ours.result()
        finally:
            end.touch()
        assert of_host.result() == ["ended by itself"]


_LOGS = "import logging\nlogging.error('said by {}')"
_JAVA_GOES_FIRST = f"""
import os, sys, threading
from pathlib import Path
import py4j.java_gateway
from catchment.engine.context import context
from catchment.engine.spark import SparkEngine
from catchment.model.errors import EngineError
from tests.layers.engine.test_spark import say_pid
from tests.world.patience import until

spark = context("test", "local[1]", {{}}, Path(sys.argv[1]))
engine = SparkEngine(lambda: spark)
assert engine.each(len, ["ab"]) == [2]
begun = Path(sys.argv[2])


def end_java():
    until("the task has begun", begun.exists)
    spark._gateway.proc.terminate()


threading.Thread(target=end_java).start()
try:
    engine.each(say_pid, [str(begun)])
except EngineError:
    engine.cancel()
exec(compile({_LOGS.format("Py4J")!r}, py4j.java_gateway.__file__, "exec"))
exec(compile({_LOGS.format("others")!r}, "others.py", "exec"))
os._exit(0)
"""


@pytest.mark.wide
def test_py4j_prints_nothing_when_java_goes_first(tmp_path: Path) -> None:
    """A signal to all processes of a service ends Java, too, while the run settles. What Py4J then logs depends on the
    place of the call that it was in."""
    done = subprocess.run(
        [sys.executable, "-c", _JAVA_GOES_FIRST, str(tmp_path / "spark.log"), str(tmp_path / "begun")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "ERROR:root:said by others\n")
