"""What a commit of ours has in its lines, by Python's JSON alone."""

import json
from typing import Any

from catchment.sink.delta.log.actions import Add, Cdc, Remove, Txn, Vector, commit_info, encoded, lines


def told(*actions: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in encoded(commit_info("WRITE", 5), actions).splitlines()][1:]


def test_what_has_no_value_is_left_out() -> None:
    """Some readers take a `deletionVector` that is null for one (delta-io/delta-rs#3055)."""
    assert told(Add("a", 3, 4, True), Remove("b", False, 7), Txn("app", 9), Cdc("c", 2)) == [
        {"add": {"path": "a", "size": 3, "modificationTime": 4, "dataChange": True, "partitionValues": {}}},
        {
            "remove": {
                "path": "b",
                "dataChange": False,
                "deletionTimestamp": 7,
                "extendedFileMetadata": True,
                "partitionValues": {},
            }
        },
        {"txn": {"appId": "app", "version": 9}},
        {"cdc": {"path": "c", "size": 2, "partitionValues": {}, "dataChange": False}},
    ]


def test_a_partition_that_is_null_and_a_vector_are_told() -> None:
    add = Add("a", 3, 4, True, None, {"part": None}, Vector("i", "x", 1, 2))
    (line,) = told(add)
    assert line["add"]["partitionValues"] == {"part": None}
    assert line["add"]["deletionVector"] == {
        "storageType": "i",
        "pathOrInlineDv": "x",
        "sizeInBytes": 1,
        "cardinality": 2,
    }
    assert [one.add for one in lines(encoded(commit_info("WRITE", 5), [add]))][1:] == [add]
