"""The wheel, tried as a user would: built from the sources, in fresh environments with packages of the index (long).

Readers with the oldest packages that pyproject.toml allows and with the newest; feeds with the newest.
"""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from catchment import __version__
from catchment.model.table import ColumnType, Kind
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import INT, shape
from tests.layers.sink.test_needed import moment

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILT = ("*.so", "*.c", "__pycache__", "*.egg-info")

pytestmark = [
    pytest.mark.whole,
    pytest.mark.inputs("requirements.lock", "pyproject.toml", "setup.py", "packaging/*"),
    pytest.mark.timeout(3600),
]

READ = """
import sys, catchment
root = sys.argv[1]
state = catchment.read(root, "shop.t", origin=False)
(whole,) = [row for row in state.duckdb().fetchall() if row[0] == 1]
print(whole[1], whole[2].timestamp(), state.arrow().num_rows, len(catchment.epochs(root)), catchment.__version__)
"""
PANDAS = """
import sys, catchment
frame = catchment.read(sys.argv[1], "shop.t", origin=False).pandas().sort_values("id")
print(frame["n"].tolist()[0], frame["n"].isna().tolist(), int(frame["big"].tolist()[0]))
"""
WHOLE = 2**53 + 1  # no double holds it


def done(*command: object, code: int = 0) -> str:
    """What a command printed, both streams."""
    ran = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ran.returncode == code, ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources in which nothing is compiled yet."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns(*BUILT))
    shutil.copytree(ROOT / "proto", source / "proto")
    for name in SOURCES:
        shutil.copy(ROOT / name, source)
    done(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", target, source
    )
    (built,) = target.glob("catchment-*.whl")
    return built


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    types = {
        "id": INT,
        "n": INT,
        "at": ColumnType(Kind.TIMESTAMP),
        "big": ColumnType(Kind.BIGINT, unsigned=True),
    }
    root = tmp_path_factory.mktemp("lake")
    Feeder(root).put(shape("t", types, ("id",)), (1, WHOLE, moment(), 2**64 - 1), (2, None, None, None))
    return root


def environment(directory: Path, *install: object) -> Path:
    """The programs of a fresh environment."""
    done(sys.executable, "-m", "venv", directory)
    done(directory / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--use-pep517", *install)
    done(directory / "bin" / "pip", "check")
    return directory / "bin"


@pytest.mark.parametrize("versions", ["newest", "oldest"])
def test_a_reader(wheel: Path, lake: Path, tmp_path: Path, versions: str) -> None:
    limits = tmp_path / "limits"
    needed = [Requirement(text) for text in PROJECT["dependencies"]] if versions == "oldest" else []
    limits.write_text("".join(f"{r.name}=={_oldest(r)}\n" for r in needed))
    programs = environment(tmp_path / "reader", wheel, "-c", limits)
    assert done(programs / "python", "-c", READ, lake).split() == [
        *(str(WHOLE), f"{moment().timestamp()}", "2", "1", __version__)
    ]
    assert done(programs / "catchment", "--version").startswith(f"catchment {__version__}")
    assert "needs pip install 'catchment[local]'" in done(programs / "catchment", "run", "feed.yaml", code=2)
    assert "pip install 'catchment[pandas]'" in done(programs / "python", "-c", PANDAS, lake, code=1)
    if versions == "newest":
        done(programs / "pip", "install", "-q", f"{wheel}[pandas]")
        assert done(programs / "python", "-c", PANDAS, lake) == f"{WHOLE} [False, True] {2**64 - 1}\n"


def test_the_page_is_in_it(wheel: Path) -> None:
    files = ROOT / "src" / "catchment" / "page" / "files"
    with zipfile.ZipFile(wheel) as archive:
        packed = {Path(name).name for name in archive.namelist() if name.startswith("catchment/page/files/")}
    assert packed == {file.name for file in files.iterdir()}


def test_the_protobuf_is_in_it(wheel: Path) -> None:
    name = "catchment_stream/v1/stream.proto"
    with zipfile.ZipFile(wheel) as archive:
        (packed,) = (one for one in archive.namelist() if one.endswith(".proto"))
        assert archive.read(packed) == (ROOT / "proto" / name).read_bytes()
    assert packed.endswith(f"data/share/catchment/proto/{name}")


def test_a_server(wheel: Path, tmp_path: Path) -> None:
    """Of streams, without Spark and without what a screen needs."""
    programs = environment(tmp_path / "serve", f"{wheel}[serve]")
    assert "SERVE.yaml" in done(programs / "catchment", "serve", "--help")
    feed, file = tmp_path / "feed.yaml", tmp_path / "serve.yaml"
    feed.write_text("""
name: shop
source: {keyspace: shop, shards: [{name: "-80", host: 127.0.0.1, port: 1, user: u, password: "p"}]}
tables: [shop.*]
sink: {path: lake}
""")
    file.write_text("""
address: 192.0.2.1
tls: {certificate: feed.yaml, key: feed.yaml}
feeds: [{file: feed.yaml, tokens: [a-token-of-16-signs]}]
""")
    assert "are no certificate with its key" in done(programs / "catchment", "serve", file, code=2)


def test_a_feed(wheel: Path, lake: Path, tmp_path: Path) -> None:
    """First without PySpark: a feed on Spark says what it needs."""
    programs = environment(tmp_path / "feed", f"{wheel}[local]")
    assert done(programs / "catchment", "--version").startswith(f"catchment {__version__}")
    assert "FEED.yaml" in done(programs / "catchment", "doctor", "--help")
    file = tmp_path / "feed.yaml"
    file.write_text(f"""
name: shop
source: {{keyspace: shop, shards: [{{name: "-80", host: 127.0.0.1, port: 1, user: u, password: "p"}}]}}
tables: [shop.*]
sink: {{path: "{lake}"}}
""")
    assert "needs pip install 'catchment[feed]'" in done(programs / "catchment", "run", file, code=2)
    alone = tmp_path / "local.yaml"
    alone.write_text(file.read_text().replace(str(lake), str(tmp_path / "lake")) + "engine: local\n")
    assert "shard -80" in done(programs / "catchment", "run", alone, "--until-caught-up", code=3)
    done(programs / "pip", "install", "-q", "--use-pep517", f"{wheel}[feed]")
    assert "shard -80" in done(programs / "catchment", "doctor", file, code=3)
    assert "1970-01-01T00:00:00Z.0001" in done(programs / "catchment", "epochs", file)
    assert done(programs / "python", "-c", READ, lake).split()[0] == str(WHOLE)


def _oldest(requirement: Requirement) -> str:
    return next(s.version for s in requirement.specifier if s.operator == ">=")
