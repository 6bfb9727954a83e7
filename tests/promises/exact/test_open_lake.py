"""The open lake for a long time: every version of the plain tables is exact for every reader.

The feed is killed again and again. A user's own programs maintain the tables meanwhile, as far as that changes no row.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from catchment.config import load
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from catchment.state.faults import VARIABLE
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun, Thread
from tests.promises.exact.impatient import be_impatient
from tests.promises.exact.maintenance import Maintenance
from tests.promises.exact.trial import Alter, Trial
from tests.promises.exact.verdict import Court, ServerOrder, Verdict
from tests.world.delta_spark import DeltaSpark
from tests.world.new_log_file import begin_new_file
from tests.world.oracle import Oracle
from tests.world.patience import PATIENCE_SECONDS
from tests.world.prepared import roll_back_prepared

Fresh = Callable[..., str]

ADD = "ALTER TABLE orders ADD COLUMN extra VARCHAR(20)"
DROP = "ALTER TABLE orders DROP COLUMN extra"
# Behind the commit of a settle, and between the files of joins and their commits.
FAULTS = tuple(f"during-settle:{number}" for number in (1, 2, 3, 5))
PAUSE_SECONDS = 0.5


class OpenLake(Trial):
    """A trial in sittings. In each the feed runs beside maintenance; then it is killed at places of the settle's crash
    protocol, and maintained while it stands still."""

    def maintained(self, spark: DeltaSpark | None) -> "OpenLake":
        """With programs that maintain its tables, which are settled all the time."""
        file = self.files.parent / "feed.yaml"
        described = yaml.safe_load(file.read_text())
        described["sink"]["settle"] = "1s"
        described["engine"] = "local"
        file.write_text(yaml.safe_dump(described))
        self.feed = self.beside.feed = load(file)
        self.places = [table_dir(self.files, TableId.parse(name)) for name in self.keys]
        self.maintenance = Maintenance(self.places, self.seed, spark)
        self.spark = spark
        self.killed = 0
        return self

    def sit(self, sittings: int, epochs: int, alters: Sequence[Alter]) -> Verdict:
        """So many sittings of so many epochs each, with a few alters in each; judge all."""
        oracles = {name: Oracle.from_rest(s.login(), self.keys) for name, s in self.servers.items()}
        with ExitStack() as stack:
            for server in self.servers.values():
                stack.callback(roll_back_prepared, server)
            stack.enter_context(self.writers)
            stack.enter_context(self.fillers)
            for server in self.servers.values():
                begin_new_file(server)
            for number in range(sittings):
                self._sitting(epochs, [alter for alter in alters if alter.epochs == number], number)
        order = ServerOrder(next(iter(self.servers.values())), "utf8mb4_unicode_ci", 60)
        court = Court(self.feed, self.files, self.keys, oracles, order, self.spark)
        return court.judge(self.rests, self.beside.readings)

    def _sitting(self, epochs: int, alters: Sequence[Alter], number: int) -> None:
        beside = Thread("maintenance", self._maintain)
        with FeedRun(self.feed) as run, ExitStack() as stack:
            run.wait_for_epochs(1)
            if number == 0:
                stack.enter_context(self.beside)
            beside.start()
            stack.callback(beside.stop)
            if number == 1:
                stack.callback(self._roll_back)
                stack.enter_context(self.xa_writers)
            for alter in alters:
                self.servers[alter.shard].sql(alter.sql, database=self.schema)
            run.wait_for_epochs(epochs)
            self._rest(run)
        for fault in FAULTS:
            self._kill(fault)
        for place in self.places:
            self.maintenance.all_of(place)

    def _roll_back(self) -> None:
        """What stays prepared would hold up an ALTER."""
        for server in self.servers.values():
            roll_back_prepared(server)

    def _maintain(self) -> None:
        self.maintenance.beside_a_run()
        time.sleep(PAUSE_SECONDS)

    def _kill(self, fault: str) -> None:
        """A run that comes to the place is killed there; one that has caught up before ends well."""
        command = [
            sys.executable,
            "-m",
            "tests.promises.exact.impatient",
            "run",
            str(self.files.parent / "feed.yaml"),
        ]
        ended = subprocess.run(
            [*command, "--until-caught-up"],
            env={**os.environ, VARIABLE: fault},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ended.returncode in (0, -signal.SIGKILL), ended.stdout + ended.stderr
        self.killed += ended.returncode != 0


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_300_epochs_of_an_open_lake(
    servers: Servers, fresh_schema: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_impatient(monkeypatch.setattr)
    trial = OpenLake(
        servers, fresh_schema(*servers.values()), tmp_path, seed=31, chunk_rows=2, loaded_rows=500
    )
    trial.maintained(None)
    trial.fill("orders", "extra")
    alters = [Alter(0, "-80", ADD), Alter(1, "80-", ADD), Alter(2, "80-", DROP), Alter(3, "-80", DROP)]
    verdict = trial.sit(5, 60, alters)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 300
    assert verdict.copying >= 60
    assert verdict.rests == 5
    assert verdict.plain > 150
    assert trial.killed > 10
    assert set(trial.maintenance.done) >= {"compact", "z_order", "vacuum", "full vacuum", "checkpoint"}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_an_open_lake_that_spark_maintains_and_judges(
    servers: Servers, fresh_schema: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_impatient(monkeypatch.setattr)
    trial = OpenLake(
        servers, fresh_schema(*servers.values()), tmp_path, seed=32, chunk_rows=4, loaded_rows=60
    )
    trial.fill("orders", "extra")
    with DeltaSpark(str(tmp_path)) as spark:
        spark.sql("SELECT 1")
        trial.maintained(spark)
        verdict = trial.sit(3, 12, [Alter(0, "-80", ADD), Alter(1, "80-", ADD), Alter(2, "80-", DROP)])
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 36
    assert verdict.plain > 30
    assert trial.maintenance.done["Spark's OPTIMIZE"] == 9
    assert trial.maintenance.done["Spark's REORG"] == 9
