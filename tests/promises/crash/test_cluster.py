"""A feed on Spark's own cluster: a master and two workers, and an executor that dies while it reads."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from catchment.demo.server import PrivateServer
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import written
from tests.promises.crash.silence import silent_in_a_chunk
from tests.promises.crash.test_work import children

SECRET = "known-to-the-cluster-alone"
# As a feed's own Spark: all five JVMs of this test end before code that was compiled twice has paid for that.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_HERE = "127.0.0.1"


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[tuple[str, list[int]]]:
    """A standalone cluster on loopback whose members must know SECRET; its address and the workers' process ids."""
    with socket.create_server((_HERE, 0)) as free:
        port = free.getsockname()[1]
    address = f"spark://{_HERE}:{port}"
    with ExitStack() as stack:

        def start(name: str, kind: str, *arguments: str) -> int:
            process = subprocess.Popen(
                [
                    Path(pyspark.__file__).parent / "bin/spark-class",
                    f"org.apache.spark.deploy.{kind}",
                    *arguments,
                ],
                env={
                    **os.environ,
                    "SPARK_DAEMON_JAVA_OPTS": (
                        f"-Dspark.authenticate=true -Dspark.authenticate.secret={SECRET} {LIGHT}"
                    ),
                    "SPARK_WORKER_DIR": str(directory / name),
                },
                stdout=stack.enter_context((directory / f"{name}.log").open("w")),
                stderr=subprocess.STDOUT,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process.pid

        ends = ("--host", _HERE, "--webui-port", "0")
        start("master", "master.Master", *ends, "--port", str(port))
        yield (
            address,
            [
                start(f"worker-{n}", "worker.Worker", *ends, "--cores", "1", "--memory", "1g", address)
                for n in range(workers)
            ],
        )


def is_executor(process: int) -> bool:
    """Whether a process is a cluster's executor."""
    return "ExecutorBackend" in Path(f"/proc/{process}/cmdline").read_text()


def test_a_feed_on_a_cluster_goes_on_without_an_executor_that_died(
    pair: dict[str, PrivateServer],
    live: MakeLife,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", _HERE)
    life = live(pair)
    life.load(100)
    conf = {
        "spark.driver.host": _HERE,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": LIGHT,
        "spark.authenticate": True,
        "spark.network.crypto.enabled": True,
    }
    (tmp_path / "spark-defaults.conf").write_text(f"spark.authenticate.secret {SECRET}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with cluster(tmp_path, 2) as (address, workers), silent_in_a_chunk(pair["-80"]) as silence:
        spark = {"master": address, "conf": conf}
        life.describe({"-80": {"port": silence.port}}, engine="spark", spark=spark)
        run = life.told("--until-caught-up")
        silence.await_chunk()
        executors = [child for worker in workers for child in children(worker) if is_executor(child)]
        assert len(executors) == 2, executors
        for executor in executors:
            os.kill(executor, signal.SIGKILL)
        silence.ends()
        with written(life):
            ended = run.ended()
        assert ended.code == 0, ended.said
    life.describe()
    assert life.run() == 0
    life.must_be_exact()
