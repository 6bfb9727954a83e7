"""Names of MySQL in Avro."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from catchment.serve.formats.avro_names import avro_name, name_of


@pytest.mark.parametrize(
    ("name", "avro"),
    [
        ("customer_id", "customer_id"),
        ("_", "_"),
        ("pos_x", "pos_x"),
        ("größe", "gr_x00F6__x00DF_e"),
        ("2nd", "_x0032_nd"),
        ("a.b", "a_x002E_b"),
        ("_x0041_", "_x005F_x0041_"),
        ("_x0041", "_x0041"),
        ("😀", "_xD83D__xDE00_"),
    ],
)
def test_as_sql_xml_has_it(name: str, avro: str) -> None:
    assert avro_name(name) == avro


@given(st.text(alphabet="_x0041é😀A-", min_size=1, max_size=12))
@example("_x0041_x0041_")
@example("_x0041é")
@example("__x005F_x")
def test_each_name_can_be_had_back(name: str) -> None:
    """So no two are one."""
    avro = avro_name(name)
    assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", avro)
    assert name_of(avro) == name
