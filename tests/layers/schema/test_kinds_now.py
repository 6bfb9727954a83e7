"""Columns that the log declares as BINARY: the catalog says at the start what they are, and then each statement."""

import pytest

from catchment.model.table import Kind, TableId
from catchment.schema.ddl import Columns, effect
from catchment.schema.kinds_now import KindsNow

T, U = TableId("shop", "t"), TableId("shop", "u")
START = {T: {"k": Kind.UUID, "Ip": Kind.INET6}, U: {"v": Kind.INET4}}


@pytest.mark.parametrize(
    ("statements", "left"),
    [
        (["ADD n INT"], {"k": Kind.UUID, "Ip": Kind.INET6}),
        (["ADD n INET4 NULL, ADD m BINARY(4) NULL"], {"k": Kind.UUID, "Ip": Kind.INET6, "n": Kind.INET4}),
        (["DROP K"], {"Ip": Kind.INET6}),
        (["DROP k", "ADD k BINARY(16) NULL"], {"Ip": Kind.INET6}),
        (["DROP k, ADD k INET6 NULL"], {"k": Kind.INET6, "Ip": Kind.INET6}),
        (["RENAME COLUMN ip TO address", "RENAME COLUMN address TO a"], {"k": Kind.UUID, "a": Kind.INET6}),
        (["DROP k, RENAME COLUMN b TO k"], {"Ip": Kind.INET6}),
        (["DROP k, DROP ip", "ADD IP INET4"], {"IP": Kind.INET4}),
    ],
)
def test_what_statements_come_to(statements: list[str], left: dict[str, Kind]) -> None:
    now = KindsNow(START)
    for sql in statements:
        did = effect(f"ALTER TABLE t {sql}", "shop", [T], sql_mode=0)
        assert isinstance(did, Columns)
        now.alter(did)
    assert now[T] == left
    assert now[U] == START[U]
    assert now.get(TableId("shop", "other")) is None
