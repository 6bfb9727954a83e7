"""A manifest speaks of its own shards and tables alone, wherever it comes from; so do the states that it has."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from catchment.model.definition import Definition
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.shard import Copy, ShardState
from catchment.model.table import TableId
from tests.world import records

GOOD = records.manifest(1)
STATE = GOOD.cut.shards["-80"]
STRANGE = replace(STATE, copies=(*STATE.copies, Copy(TableId("shop", "strange"))))
BAD: dict[str, dict[str, Any]] = {
    "absence of 80-": {"absent": {"80-": 1}},
    "copies of shop.strange": {"cut": replace(GOOD.cut, shards={"-80": STRANGE})},
    "copies of shop.orders": {"shapes": ()},
}


@pytest.mark.parametrize("why", BAD)
def test_one_that_does_not_fit_is_not_made(why: str) -> None:
    with pytest.raises(ValueError, match=f"epoch {epoch_text(GOOD.epoch)}: {why}, which it does not have"):
        replace(GOOD, **BAD[why])


@pytest.mark.parametrize("why", BAD)
def test_nor_read_from_a_store(why: str) -> None:
    document = {**msgspec.to_builtins(GOOD), **msgspec.to_builtins(BAD[why])}
    with pytest.raises(msgspec.ValidationError, match=f"{why}, which it does not have"):
        msgspec.json.decode(msgspec.json.encode(document), type=Manifest)


def test_one_that_fits_is_the_same_behind_its_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(GOOD), type=Manifest) == GOOD


def test_a_state_has_each_table_once() -> None:
    definition = Definition(records.ORDERS, (), ("id",), "utf8")
    for twice in ({"copies": STATE.copies * 2}, {"definitions": (definition, definition)}):
        with pytest.raises(ValueError, match=r"more than one (copy|definition) of shop\.orders"):
            replace(STATE, **twice)
        document = {**msgspec.to_builtins(STATE), **msgspec.to_builtins(twice)}
        with pytest.raises(msgspec.ValidationError, match=r"of shop\.orders"):
            msgspec.json.decode(msgspec.json.encode(document), type=ShardState)
