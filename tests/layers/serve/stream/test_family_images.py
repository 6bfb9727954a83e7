"""The log of a family of tables: what it does not tell of one of them makes that one torn."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from catchment.model.foreign_key import ForeignKey
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.serve.stream import family_images
from catchment.serve.stream.family_images import family_log
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Fact, PartialImage, Unreadable

PARENT, CHILD, OTHER = (TableId("s", name) for name in ("parent", "child", "other"))
AT = LogOffset("binlog.000001", 400)


def torn_by(monkeypatch: pytest.MonkeyPatch, *facts: Fact) -> frozenset[TableId]:
    """What is torn where a stretch without rows has these facts."""
    stretch = SimpleNamespace(reached_stop=True, xa=(), facts=facts, voids=(), boundary=5, groups=5)

    @contextmanager
    def read_log(*_: object, **__: object) -> Iterator[Any]:
        yield SimpleNamespace(images=lambda: iter(()), stretch=stretch)

    position = SimpleNamespace(server=None, at=AT)
    view = SimpleNamespace(floor=AT, told=AT, prepared=())
    shapes = {table: SimpleNamespace(table=table, key=("id",), columns=()) for table in (PARENT, CHILD)}
    key = ForeignKey("fk", CHILD, ("parent_id",), PARENT, ("id",))
    with monkeypatch.context() as patch:
        patch.setattr(family_images, "read_log", read_log)
        patch.setattr(Wanted, "of", lambda *_, **__: None)
        endpoint: Any = SimpleNamespace(shard="ks/-")
        given: Any = (position, view, AT, (key,), shapes, ())
        return family_log(endpoint, *given).torn


def test_rows_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torn_by(monkeypatch) == set()
    assert torn_by(monkeypatch, Unreadable(1, PARENT, AT, "a value is no text")) == {PARENT}
    assert torn_by(monkeypatch, PartialImage(1, CHILD, AT, (), (), (0, 1))) == {CHILD}
    assert torn_by(monkeypatch, Unreadable(1, OTHER, AT, "a value is no text")) == set()
