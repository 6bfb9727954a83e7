"""Parameters of prepared statements, by what a server makes of them."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.wire.packets.statements import execute_packet
from tests.layers.wire.answers import Session, columns_of, perform, run, select

NOW = dt.datetime(2026, 11, 20, 1, 2, 3, 456789)


@pytest.mark.parametrize(
    "row",
    [
        (-(2**63), 2**64 - 1, "", b"", Decimal("-0.0000000001"), NOW, dt.date(1, 1, 1)),
        (2**63 - 1, 2**63, "a'\\?😀\0", bytes(range(256)), Decimal(10) ** 27, dt.datetime(1, 1, 1), None),
        (0, 0, "é" * 40_000, b"\0" * 300, Decimal("0.5"), NOW, dt.date(2024, 2, 29)),
        (None, None, None, None, None, None, None),
        (-1, 5, "y" * 251, b"z" * 70_000, Decimal("1E3"), NOW, dt.date(9999, 12, 31)),
    ],
    ids=["least", "most", "long", "null", "longer"],
)
def test_parameters_arrive_as_they_are(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], row: tuple[Any, ...]
) -> None:
    schema = fresh_schema(shard)
    run(
        session,
        f"CREATE TABLE {schema}.p (i bigint, u bigint unsigned, t longtext, b longblob,"
        " d decimal(38,10), m datetime(6), e date)",
    )
    perform(session, f"INSERT INTO {schema}.p VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    names = [name for name, value in zip("iutbdme", row, strict=True) if value is not None]
    where = " AND ".join(f"{name} = ?" for name in names) or "i IS NULL"
    columns = columns_of(session, schema, "p")
    decoder, _ = select(
        session, f"SELECT * FROM {schema}.p WHERE {where}", columns, [v for v in row if v is not None]
    )
    assert [tuple(found.values()) for found in decoder.take_batch().to_pylist()] == [row]


@pytest.mark.parametrize(
    "wrong", [2**64, -(2**63) - 1, 1.5, Decimal("NaN"), NOW.replace(tzinfo=dt.UTC)], ids=repr
)
def test_parameters_that_cannot_be_sent(wrong: Any) -> None:
    with pytest.raises(ValueError, match="a statement takes"):
        execute_packet(1, [wrong])
