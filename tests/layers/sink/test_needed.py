"""What DuckDB and others need beside the reader: it is there, or what to install is said."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.model.errors import NotInstalled
from catchment.model.table import ColumnType, Kind
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import INT, shape

TYPES = {"id": INT, "at": ColumnType(Kind.TIMESTAMP)}


def moment() -> datetime:
    return datetime(2026, 11, 22, 4, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    row = (1, moment())
    Feeder(tmp_path).put(shape("t", TYPES, ("id",)), row)
    return tmp_path


def test_a_timestamp_is_fetched_from_duckdb(lake: Path) -> None:
    ((_, at),) = read(lake, "shop.t", origin=False).duckdb().fetchall()
    assert at == moment()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_what_is_not_installed_is_named(lake: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    state = read(lake, "shop.t")
    said = rf"^{package}\(\) needs pip install 'catchment\[{package}\]' \({package} is missing\)$"
    with pytest.raises(NotInstalled, match=said):
        getattr(state, package)()
