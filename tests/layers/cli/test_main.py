"""The command line: exit codes, one line per error, text and JSON."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from catchment.cli import main as main_module
from catchment.cli.main import execute
from catchment.cli.output import duration
from catchment.config import load
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model import errors
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import ORDERS
from tests.world import records


@pytest.fixture
def feed_file(tmp_path: Path, shard: PrivateServer) -> Path:
    file = tmp_path / "feed.yaml"
    file.write_text(f"""
name: shop
source:
  keyspace: shop
  shards:
    - {{name: "-80", host: {shard.host}, port: {shard.port}, user: {FEED_USER}, password: "{shard.password}"}}
tables: [clishop.*]
sink: {{path: lake}}
""")
    return file


@pytest.fixture
def clishop(shard: PrivateServer) -> object:
    shard.sql(
        "DROP DATABASE IF EXISTS clishop",
        "CREATE DATABASE clishop",
        "CREATE TABLE clishop.orders (id int PRIMARY KEY)",
    )
    yield
    shard.sql("DROP DATABASE clishop")


@pytest.mark.usefixtures("clishop")
def test_doctor_in_words(feed_file: Path, shard: PrivateServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor", str(feed_file)]) == 0
    assert "0 errors" in capsys.readouterr().out
    shard.sql("CREATE TABLE clishop.s (id int PRIMARY KEY) ENGINE=MyISAM")
    assert execute(["doctor", str(feed_file)]) == 3
    out = capsys.readouterr().out
    assert "error    shard -80: clishop.s has the engine MyISAM\n         risk: " in out
    assert 'do:   ALTER TABLE `clishop`.`s` ENGINE=InnoDB, or add "!clishop.s" to `tables`' in out
    assert out.endswith("1 error, 2 warnings\n")


@pytest.mark.usefixtures("clishop")
def test_doctor_as_json(feed_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor", "--json", str(feed_file)]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {f["severity"] for f in findings} == {"ok", "warning"}
    assert findings[0]["shard"] == "-80"


def test_status(feed_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status", str(feed_file)]) == 6
    assert "the feed has not run yet" in capsys.readouterr().err
    store = Store.open(load(feed_file).state.get_secret_value(), "shop")
    assert execute(["status", str(feed_file)]) == 0
    assert "no epoch is committed yet" in capsys.readouterr().out
    with hold(store) as lease:
        store.put_manifest(records.manifest(3), lease.fence)
        store.put_commit(records.commit(3), lease.fence)
        assert execute(["status", str(feed_file)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("feed shop: run by process")
    assert out[1].startswith("epoch 1970-01-01T00:00:03Z.0000, ")
    assert out[4] == "-80    binlog.000001:3000 [0-1-3]"
    assert out[7] == "shop.orders  copying  30           100       30%  ?       unknown  the newest epoch"
    assert execute(["status", "--json", str(feed_file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epoch"], found["runner"]) == (3 << 32, "")
    assert found["epoch_text"] == "1970-01-01T00:00:03Z.0000"
    assert found["tables"] == [
        {
            "table": "shop.orders",
            "state": "copying",
            "rows": 30,
            "rows_expected": 100,
            "refused": [],
            "as_of": "",
            "reason": "",
            "throttled": [],
            "parts": [
                {
                    "shard": "-80",
                    "rows": 30,
                    "expected": 100,
                    "basis": "catalog",
                    "rate": None,
                    "left": {"why": "nobody runs the feed"},
                }
            ],
            "expected": 100,
            "rate": None,
            "left": {"why": "nobody runs the feed"},
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["doctor", "absent.yaml"], 2, "catchment: cannot read the feed file"),
        (["doctor"], 2, "Missing argument 'FEED.yaml'"),
        (["nothing"], 2, "No such command 'nothing'"),
        (["status", "--yes", "x"], 2, "No such option '--yes'"),
        ([], 2, "Usage: catchment"),
    ],
)
def test_misuse(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(arguments) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--help"]) == 0
    out = capsys.readouterr().out
    codes = {
        e.exit_code
        for e in vars(errors).values()
        if isinstance(e, type) and issubclass(e, errors.CatchmentError)
    }
    for word in (*map(str, codes), *main_module._COMMANDS):
        assert f"  {word} " in out


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (
            errors.LeaseHeld("feed shop is run by process 1 on db"),
            6,
            "catchment: feed shop is run by process 1 on db",
        ),
        (errors.VerifyDifference("2 keys differ"), 1, "catchment: 2 keys differ"),
        (KeyboardInterrupt(), 130, "goes on from here"),
        (ZeroDivisionError("oops"), 70, "a fault of this program"),
    ],
)
def test_errors_become_exit_codes(
    raised: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def doctor() -> None:
        raise raised

    monkeypatch.setattr("catchment.cli.doctor.doctor", doctor)
    assert execute(["doctor"]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert ("Traceback" in captured.err) is (code == 70)
    assert captured.out == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4 s"),
        (75, "75 s"),
        (100, "100 s"),
        (150, "2 min"),
        (600, "10 min"),
        (18000, "5.0 h"),
        (300_000, "3.5 d"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_epochs(tmp_path: Path, feed_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["epochs", str(feed_file)]) == 5
    assert "holds no epoch; run the feed first" in capsys.readouterr().err
    feeder = Feeder(tmp_path / "lake")
    for second in range(3):
        feeder.put_at(1795320000.25 + second, 2, ORDERS, (second, "x"))
    assert execute(["epochs", str(feed_file), "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "epoch                      cut (UTC)                changes  can be read",
        "2026-11-22T04:00:02Z.0002  2026-11-22 04:00:02.250  0        yes",
        "2026-11-22T04:00:01Z.0002  2026-11-22 04:00:01.250  0        yes",
    ]
    assert execute(["epochs", str(feed_file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 3
    assert found[0] == {
        "epoch": 1795320002 << 32 | 2,
        "epoch_text": "2026-11-22T04:00:02Z.0002",
        "time": "2026-11-22T04:00:02.250000Z",
        "changes": 0,
        "readable": True,
        "absent": {},
    }
    for option, value in (("--epoch", found[1]["epoch_text"]), ("--at", "2026-11-22 04:00:02")):
        assert execute(["views", str(feed_file), option, value]) == 0
        assert f"as of epoch {found[1]['epoch_text']}" in capsys.readouterr().out


def test_a_signal_while_python_ends_leaves_the_exit_code(tmp_path: Path) -> None:
    """By then Python has given signals back their default, under which a second Ctrl-C would be a death by signal."""
    late = """
import os, signal, sys

class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)

late = Late()
from catchment.cli.start import main
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", late, "status", str(tmp_path / "none.yaml")], check=False, capture_output=True
    )
    assert ended.returncode == 2
