"""All benchmarks, each in a process of its own: a table for people, bench/out/latest.json for programs.

`python -m bench [--rows N] [--runs N] [--only NAME ...]`; without `--rows`, ROWS of the environment or
2 million. With 16 million rows and more the long benchmarks run at full size. A figure stands beside its
reference of the same run; paired runs are interleaved, so that a ratio holds on a busy machine, too.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure

ROWS = 2_000_000
OUT = Path(__file__).parent / "out" / "latest.json"
# Name on the command line, module, whether it takes the number of rows.
BENCHMARKS = {
    "decode-log": ("bench.decode_log", False),
    "decode-result": ("bench.decode_result", False),
    "decode-types": ("bench.decode_types", False),
    "copy": ("bench.copy_table", True),
    "chunks": ("bench.chunk_sizes", True),
    "follow": ("bench.follow_log", True),
    "latency": ("bench.latency", False),
    "read": ("bench.read_lake", True),
    "tables": ("bench.many_tables", False),
    "stream": ("bench.stream", True),
    "serve": ("bench.serve", True),
    "shards": ("bench.many_shards", False),
    "driver": ("bench.driver", False),
    "upkeep": ("bench.upkeep", False),
    "endurance": ("bench.endurance", False),
    "start": ("bench.start", True),
    "dump": ("bench.dump", True),
    "ddl": ("bench.ddl", True),
    "memory": ("bench.memory", True),
    "sink": ("bench.sink", True),
    "open": ("bench.open_table", False),
    "index": ("bench.index", True),
}
_COLUMNS = ("name", "value", "unit", "ratio", "reference", "reference_value", "runs")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry of `make bench`; exit code 1 when a benchmark failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS") or ROWS))
    parser.add_argument("--runs", type=int, default=None, help="runs of each benchmark (its own default)")
    parser.add_argument(
        "--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS), metavar="NAME"
    )
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.into is not None:
        chosen.into.write_text(json.dumps(_measured(chosen.only[0], chosen.rows, chosen.runs)))
        return
    figures: list[Figure] = []
    failed = []
    for name in chosen.only:
        print(f"{name} ...", flush=True)
        found = _in_process(name, chosen.rows, chosen.runs)
        if found is None:
            failed.append(name)
        figures += found or []
        for line in table(found or []):
            print(f"  {line}", flush=True)
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\n{OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _in_process(name: str, rows: int, runs: int | None) -> list[Figure] | None:
    """Figures of one benchmark; None when it failed (its error is on the screen)."""
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory:
        into = Path(directory) / "figures.json"
        command = [sys.executable, "-m", "bench", "--only", name, "--rows", str(rows), "--into", str(into)]
        if runs is not None:
            command += ["--runs", str(runs)]
        if subprocess.run(command, cwd=Path(__file__).parent.parent, check=False).returncode != 0:
            return None
        found: list[Figure] = json.loads(into.read_text())
        return found


def _measured(name: str, rows: int, runs: int | None) -> list[Figure]:
    module, sized = BENCHMARKS[name]
    options = {"rows": rows} if sized else {}
    if runs is not None:
        options["runs"] = runs
    found: list[Figure] = importlib.import_module(module).run(**options)
    return found


def table(figures: Sequence[Figure]) -> list[str]:
    """The figures as lines of one table."""
    rows = [list(_COLUMNS), *[[_text(figure[column]) for column in _COLUMNS] for figure in figures]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


if __name__ == "__main__":
    main()
