"""What reading a lake needs: the packages that `pip install catchment` brings, and no other."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.layers.sink.feeder import Feeder

# What `pip install catchment` brings: pyproject.toml, and what those packages need in turn.
READER = (
    "pyarrow",
    "deltalake",
    "arro3",
    "deprecated",
    "wrapt",
    "duckdb",
    "msgspec",
    "pyroaring",
    "pytz",
    "typing_extensions",
)

_ALONE = """
import sys

class Absent:
    '''Of what is installed beside Python, what is not named is not found, as in a fresh environment.'''
    def find_spec(self, name, path=None, target=None):
        package = name.partition('.')[0]
        known = package in sys.stdlib_module_names or package in {allowed} or package == 'catchment'
        if not known and not package.startswith('_'):
            raise ModuleNotFoundError(f'No module named {{package!r}}', name=package)

sys.meta_path.insert(0, Absent())
{script}
"""


def alone(script: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a script where only the reader's packages are found."""
    text = _ALONE.format(allowed=READER, script=script)
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_lake_is_read_with_the_readers_packages_alone(feeder: Feeder) -> None:
    script = """
import catchment
from catchment.api.views import views
root = sys.argv[1]
state = catchment.read(root, 'shop.orders')
print(state.arrow().num_rows, len(state.duckdb().fetchall()), len(catchment.epochs(root)))
print(catchment.read(root, 'shop.orders', 2).arrow().num_rows, 'VIEW' in views(root))
"""
    done = alone(script, feeder.root)
    assert (done.stderr, done.stdout) == ("", "2 2 3\n3 True\n")


@pytest.mark.parametrize(
    "how", ["catchment.read(sys.argv[1], 'shop.orders')", "catchment.epochs(sys.argv[1])"]
)
def test_a_feed_file_says_what_is_missing(tmp_path: Path, how: str) -> None:
    file = tmp_path / "feed.yaml"
    file.write_text("name: shop\n")
    script = f"""
import catchment
from catchment.model.errors import NotInstalled
try:
    {how}
except NotInstalled as error:
    print(error)
"""
    done = alone(script, file)
    assert done.stderr == ""
    assert done.stdout == (
        f"{file}: reading by a feed file needs pip install 'catchment[stream]' (pydantic is missing); or give the "
        "lake's directory, which is sink.path in that file\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--version"], 0, "catchment 0.1.0"),
        (
            ["run", "feed.yaml"],
            2,
            "catchment: the command needs pip install 'catchment[local]', or 'catchment[feed]' for feeds on Spark "
            "(click is missing)",
        ),
    ],
)
def test_the_command_says_what_is_missing(arguments: list[str], code: int, said: str) -> None:
    done = alone("from catchment.cli.start import main\nsys.argv[0] = 'catchment'\nmain()", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert (done.stdout or done.stderr).startswith(said)
