"""What the start of a command loads: nothing that takes long to import and that only some runs of it need."""

import json
import subprocess
import sys
from pathlib import Path

from catchment.state.store import Store

# Of each command in turn what it loads, in one process: what one has loaded, the next ones have as well.
SAY = """
import json, sys
from catchment.cli.main import execute

HEAVY = set(json.loads(sys.argv[1]))
for arguments in json.loads(sys.argv[2]):
    sys.stdout = open("/dev/null", "w")
    code = execute(arguments)
    sys.stdout = sys.__stdout__
    assert code == 0, arguments
    print(json.dumps(sorted(HEAVY & sys.modules.keys())))
"""
HEAVY = {
    "deltalake",
    "duckdb",
    "grpc",
    "numpy",
    "obstore",
    "prometheus_client",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.flight",
    "pyarrow.parquet",
    "pydantic",
    "pymysql",
    "pyspark",
    "rich",
    "sqlalchemy",
    "sqlglot",
    "yaml",
}
FILE = {"pydantic", "yaml"}
STORE = {"sqlalchemy"}
ROWS = {"numpy", "pyarrow", "pyarrow.compute"}
# In this order each command needs all that the ones before it need.
MAY_LOAD: dict[str, set[str]] = {
    "": set(),
    "epochs": FILE,
    "views": FILE,
    "serve": FILE,
    "status": FILE | STORE,
    "dump": FILE | STORE,
    "tables": FILE | STORE,
    "apply": FILE | STORE,
    "set": FILE | STORE,
    "stop": FILE | STORE,
    "settle": FILE | STORE,
    "doctor": FILE | STORE | ROWS | {"pymysql"},
    "adopt": FILE | STORE | ROWS | {"pymysql"},
    "run": FILE | STORE | ROWS | {"pymysql", "prometheus_client"},
}


FEED = """
name: shop
source: {keyspace: shop, shards: [{name: "-80", host: 127.0.0.1, port: 1, user: u, password: "p"}]}
tables: [shop.*]
sink: {path: lake}
state: state.db
"""
# These are carried out; of the others it is their module that counts, which `--help` loads.
CARRIED_OUT = {"status": ["status"], "dump": ["dump", "status"], "tables": ["tables"]}


def test_a_command_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    """Of whatever each command needs later, the place that needs it says so with an import of its own."""
    file = tmp_path / "feed.yaml"
    file.write_text(FEED)
    Store.open(f"sqlite:///{tmp_path}/state.db", "shop").close()
    asked = [
        [*CARRIED_OUT[name], str(file)] if name in CARRIED_OUT else [name, "--help"] if name else ["--help"]
        for name in MAY_LOAD
    ]
    told = subprocess.run(
        [sys.executable, "-c", SAY, json.dumps(sorted(HEAVY)), json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = dict(zip(MAY_LOAD, map(json.loads, told.stdout.splitlines()), strict=True))
    assert set(loaded["run"]) == MAY_LOAD["run"], "what is looked for is not what is loaded"
    too_much = {name: sorted(set(found) - MAY_LOAD[name]) for name, found in loaded.items()}
    assert not any(too_much.values()), {name: found for name, found in too_much.items() if found}
