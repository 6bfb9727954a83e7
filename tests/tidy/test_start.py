"""What the start of a command loads: nothing that takes long to import and that only some runs of it need."""

import json
import subprocess
import sys

# Of each command in turn what it loads, in one process: what one has loaded, the next ones have as well.
SAY = """
import json, sys
from catchment.cli.main import execute

HEAVY = set(json.loads(sys.argv[1]))
for arguments in json.loads(sys.argv[2]):
    sys.stdout = open("/dev/null", "w")
    execute(arguments)
    sys.stdout = sys.__stdout__
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


def test_a_command_loads_no_more_than_it_needs() -> None:
    """Of whatever each command needs later, the place that needs it says so with an import of its own."""
    asked = [[name, "--help"] if name else ["--help"] for name in MAY_LOAD]
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
