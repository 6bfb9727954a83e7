"""Which SELECTed rows the images of the log explain: each key's own history of values decides."""

from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.image import DELETE, DELETED, GROUP, INSERT, OP, SEQ, SIDE, UPDATE
from catchment.rewind.states import AFTER, BEFORE, states_at
from catchment.rewind.unlogged import explained

ROW = pa.schema([("id", pa.int32()), ("v", pa.int32())])
IMAGE = pa.schema([*ROW, (SIDE, pa.uint8()), (OP, pa.uint8()), (SEQ, pa.int64()), (GROUP, pa.int64())])
KEYS = range(4)
ABSENT = -1

# A key takes a value, or ABSENT; or it becomes another key.
EVENTS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(ABSENT, 2), st.none() | st.sampled_from(KEYS)), max_size=12
)


@dataclass
class Log:
    """What a table had, key by key: every value with the group that gave it."""

    images: list[dict[str, int]] = field(default_factory=list)
    past: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def value(self, key: int) -> int:
        return self.past[key][-1][1]

    def add(self, group: int, key: int, to: int, becomes: int | None) -> None:
        """One row event, if the table allows it."""
        before = self.value(key)
        if becomes is not None and becomes != key:
            if before != ABSENT and self.value(becomes) == ABSENT and to != ABSENT:
                self._image(group, key, before, BEFORE, UPDATE)
                self._image(group, becomes, to, AFTER, UPDATE)
                self.past[key].append((group, ABSENT))
                self.past[becomes].append((group, to))
            return
        if before == to == ABSENT:
            return
        op = INSERT if before == ABSENT else DELETE if to == ABSENT else UPDATE
        if before != ABSENT:
            self._image(group, key, before, BEFORE, op)
        if to != ABSENT:
            self._image(group, key, to, AFTER, op)
        self.past[key].append((group, to))

    def _image(self, group: int, key: int, value: int, side: int, op: int) -> None:
        self.images.append(
            {"id": key, "v": value, SIDE: side, OP: op, SEQ: len(self.images) + 1, GROUP: group}
        )


@given(st.lists(st.integers(ABSENT, 2), min_size=4, max_size=4), EVENTS, st.data())
def test_each_key_is_judged_by_its_own_past(
    first: list[int], events: list[tuple[int, int, int | None]], data: st.DataObject
) -> None:
    log = Log(past={key: [(-1, value)] for key, value in zip(KEYS, first, strict=True)})
    group = 0
    for event in events:
        log.add(group, *event)
        group += data.draw(st.integers(0, 1))
    boundary = data.draw(st.integers(0, group + 1))
    selected = {key: data.draw(st.integers(ABSENT, 3)) for key in KEYS}
    rows = pa.Table.from_pylist([{"id": k, "v": v} for k, v in selected.items() if v != ABSENT], ROW)
    images = pa.Table.from_pylist(log.images, IMAGE)
    states = states_at(images, ("id",), boundary)
    found = explained(rows, images, states, ("id",), boundary)
    kept = {row["id"] for row in found.states.to_pylist()}
    unproven = set()
    for row in states.to_pylist():
        key = row["id"]
        past = log.past[key]
        values, last = [value for _, value in past], ABSENT if row[DELETED] else row["v"]
        if past[-1][0] >= boundary or selected[key] == last:
            assert key in kept
        elif selected[key] in values:
            assert key in kept
            unproven.add(key)
        else:
            assert key not in kept
    assert found.unproven == len(unproven)
