"""Change columns of rows, without a server."""

import pyarrow as pa

from catchment.serve.changes.rows import GTID, GroupFacts
from catchment.wire.log.groups import SCHEMA

UUID = bytes.fromhex("3e11fa47714111e29e6f14feb5d71c37")
TEXT = "3e11fa47-7141-11e2-9e6f-14feb5d71c37"


def _group(
    ordinal: int, sequence: int, uuid: bytes | None = None, tag: str | None = None
) -> dict[str, object]:
    zeros = {field.name: 0 for field in SCHEMA}
    return {**zeros, "ordinal": ordinal, "server_id": 7, "sequence": sequence, "uuid": uuid, "tag": tag}


def test_a_gtid_is_named_as_its_server_names_it() -> None:
    groups = GroupFacts()
    for rows in (
        [_group(0, 5), _group(1, 9, UUID), _group(2, 10, UUID, "")],
        [_group(3, 4, UUID, "blue"), _group(4, 0), _group(5, 0, UUID)],
    ):
        groups.add(pa.RecordBatch.from_pylist(rows, SCHEMA))
    named = groups.table().column(GTID).to_pylist()
    assert named == ["0-7-5", f"{TEXT}:9", f"{TEXT}:10", f"{TEXT}:blue:4", None, None]
    assert GroupFacts().table().num_rows == 0
