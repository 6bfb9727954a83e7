"""A manifest speaks of its own shards and tables alone, wherever it comes from."""

from typing import Any

import msgspec
import pytest

from catchment.model.chunk import Progress
from catchment.model.epoch import Manifest, epoch_text
from catchment.model.table import TableId
from tests.world import records

GOOD = records.manifest(1)
STRANGE = TableId("shop", "strange")
BAD: dict[str, dict[str, Any]] = {
    "sealed positions of 80-": {"sealed": {**GOOD.sealed, "80-": records.offset(1)}},
    "definitions of 80-": {"definitions": {"80-": ()}},
    "progress of 80-": {"progress": (*GOOD.progress, Progress("80-", records.ORDERS))},
    "progress of shop.strange": {"progress": (*GOOD.progress, Progress("-80", STRANGE))},
    "progress of shop.orders": {"shapes": ()},
    "sealed positions of -80": {"cut": {}},
}


@pytest.mark.parametrize("why", BAD)
def test_one_that_does_not_fit_is_not_made(why: str) -> None:
    with pytest.raises(ValueError, match=f"epoch {epoch_text(GOOD.epoch)}: {why}, which it does not have"):
        msgspec.structs.replace(GOOD, **BAD[why])


@pytest.mark.parametrize("why", BAD)
def test_nor_read_from_a_store(why: str) -> None:
    document = {**msgspec.to_builtins(GOOD), **msgspec.to_builtins(BAD[why])}
    with pytest.raises(msgspec.ValidationError, match=f"{why}, which it does not have"):
        msgspec.json.decode(msgspec.json.encode(document), type=Manifest)


def test_one_that_fits_is_the_same_behind_its_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(GOOD), type=Manifest) == GOOD
