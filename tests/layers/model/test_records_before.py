"""Records of manifests that earlier versions wrote are read as what they were."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from catchment.model.epoch import Manifest
from catchment.model.records import Unreadable, base_of, digest, encoded, link_of, names_of, value_of
from catchment.model.version import RECORD_VERSION
from tests.layers.model.manifests_before import CONTENT, kept

WHOLE = ["version 1", "version 1, in another order"]


def as_before(manifest: Manifest) -> dict[str, Any]:
    """A manifest as its JSON was."""
    found: dict[str, Any] = msgspec.to_builtins(manifest)
    assert not found.pop("stale")
    assert not found.pop("shadows")
    assert not any(out.pop("keeps") for out in found["outside"])
    cut = found.pop("cut")
    states = cut.pop("shards")
    before: dict[str, Any] = json.loads(
        json.dumps(
            {
                **found,
                **cut,
                "cut": {shard: state["position"] for shard, state in states.items()},
                "sealed": {shard: state["sealed"] for shard, state in states.items() if "sealed" in state},
                "progress": [
                    {"shard": shard, **copy}
                    for shard, state in states.items()
                    for copy in state.get("copies", ())
                ],
                "definitions": {
                    s: state["definitions"] for s, state in states.items() if "definitions" in state
                },
            }
        )
    )
    return before


def whole_copies(value: dict[str, Any]) -> dict[str, Any]:
    """What was, without entries that say nothing: copies have no defaults in their JSON now."""
    nothing = {"copied": None, "born_after": None, "done": False, "rows": 0, "rows_expected": 0}
    return {
        **value,
        "progress": [
            {name: part for name, part in copy.items() if name not in nothing or part != nothing[name]}
            for copy in value["progress"]
        ],
        "definitions": {shard: known for shard, known in value["definitions"].items() if known},
    }


@pytest.mark.parametrize("what", WHOLE)
def test_whole_records_of_version_1(what: str) -> None:
    ((record, was),) = kept(what)
    found = value_of(record, None, Manifest)
    assert as_before(found) == whole_copies(was)
    assert base_of(record, Manifest).value == found
    assert names_of(record) == {CONTENT, digest(record)}


def test_a_chain_of_version_2() -> None:
    (first, _), *changes = kept("version 2")
    base = base_of(first, Manifest)
    for record, was in kept("version 2"):
        link = link_of(record)
        assert (link is None) == (record == first)
        assert as_before(value_of(record, None if link is None else base, Manifest)) == whole_copies(was)
        assert names_of(record) == {digest(record)}
    for record, _ in changes:
        with pytest.raises(Unreadable, match="is not there"):
            value_of(record, None, Manifest)
        with pytest.raises(Unreadable, match="of a later version"):
            value_of(record, replace(base, before=None), Manifest)


def test_what_follows_is_of_this_version() -> None:
    """A run writes a whole record first, whatever version wrote the one before."""
    ((record, _),) = kept("version 1")
    manifest = value_of(record, None, Manifest)
    written, base = encoded(manifest, None)
    assert json.loads(written)["version"] == RECORD_VERSION
    assert value_of(written, None, Manifest) == base.value == manifest


def test_damage_is_told() -> None:
    (first, _), (change, _), *_ = kept("version 2")
    base = base_of(first, Manifest)
    for harm, said in (
        ({"progress": {"4": {"shard": "-40", "table": {"schema": "shop", "name": "x"}}}}, "entry 4 of 4"),
        ({"progress": {"0": {"shard": "-40", "table": {"schema": "shop", "name": "x"}}}}, "copies of shop.x"),
        ({"progress": {"0": {"shard": "x", "table": {"schema": "shop", "name": "items"}}}}, "progress of x"),
        ({"resets": {"x": None}}, "shards that its base does not have: x"),
        ({"cut": {"x": json.loads(first)["cut"]["-40"]}}, "shards that its base does not have: x"),
        ({"epoch": "x"}, "cannot be read"),
    ):
        with pytest.raises(Unreadable, match=said):
            value_of(json.dumps({**json.loads(change), **harm}).encode(), base, Manifest)
    for harm, said in (
        ({"sealed": {"x": {"file": "a", "offset": 4}}}, "sealed positions of x"),
        ({"definitions": {"x": []}}, "definitions of x"),
    ):
        with pytest.raises(Unreadable, match=said):
            value_of(json.dumps({**json.loads(first), **harm}).encode(), None, Manifest)
