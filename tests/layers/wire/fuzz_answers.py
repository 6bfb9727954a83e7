"""Hostile answers to SELECT and PREPARE: real ones with packets changed, left out, doubled or exchanged."""

import random
from collections.abc import Iterable

import msgspec

from catchment.model.errors import CorruptResult, SourceError
from catchment.model.table import Column
from catchment.wire.packets.results import ResultDecoder
from catchment.wire.packets.statements import parse_prepare_ok
from tests.layers.wire.events import packet
from tests.layers.wire.fuzz import change
from tests.layers.wire.recorded import Answer, Recording

SELECT, PREPARE = "select ", "prepare"
_EXPECTED = (CorruptResult, SourceError)
_MOST = 4096  # bytes of an answer


def answers(made: Iterable[Recording]) -> list[Answer]:
    """Those that are small, named by what they reach."""
    found = [answer for recording in made for answer in recording.answers if len(answer.rows) <= _MOST]
    prepared = [Answer(PREPARE, a.columns, a.prepared, b"") for a in found]
    return [Answer(SELECT + a.name, a.columns, a.rows, b"") for a in found] + prepared


class HostileAnswer(msgspec.Struct, frozen=True):
    """Bytes in place of an answer."""

    answer: Answer
    raw: bytes

    def __str__(self) -> str:
        return f"{self.answer.name}: {self.raw.hex()}"

    def ended(self, rng: random.Random) -> str:
        """What became of it: `decoded`, `open` when more must come, else the error. Raises AssertionError."""
        if self.answer.name == PREPARE:
            return _prepared(self.raw)
        return _selected(rng, self.answer.columns, self.raw)


def draw(rng: random.Random, answer: Answer) -> HostileAnswer:
    return HostileAnswer(answer, changed(rng, answer))


def changed(rng: random.Random, answer: Answer) -> bytes:
    """The bytes of the answer with one to three packets changed, mostly rows."""
    found = payloads(answer.rows)
    rows_from = len(answer.columns) + 2 if answer.name != PREPARE else 0
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        first = rows_from if rng.random() < 0.8 and rows_from < len(found) else 0
        if first < len(found):
            _change_one(rng, found, rng.randrange(first, len(found)))
    raw = bytearray(b"".join(packet(n + 1, payload) for n, payload in enumerate(found)))
    if rng.randrange(16) == 0:
        change(rng, raw, 0, len(raw))
    return bytes(raw)


def _change_one(rng: random.Random, found: list[bytes], at: int) -> None:
    way = rng.randrange(24)
    if way == 0:
        del found[at]
    elif way == 1:
        found.insert(at, found[at])
    elif way == 2:
        other = rng.randrange(len(found))
        found[at], found[other] = found[other], found[at]
    else:
        one = bytearray(found[at])
        change(rng, one, 0, len(one))
        found[at] = bytes(one)


def payloads(raw: bytes) -> list[bytes]:
    """Of packets of less than 16 MB."""
    found = []
    while raw:
        size = int.from_bytes(raw[:3], "little")
        found.append(raw[4 : 4 + size])
        raw = raw[4 + size :]
    return found


def _prepared(raw: bytes) -> str:
    try:
        found = parse_prepare_ok(raw)
    except _EXPECTED as error:
        return type(error).__name__
    if found is None:
        return "open"
    assert found.size <= len(raw)
    return "decoded"


def check_broken(decoder: ResultDecoder) -> None:
    """It takes nothing after an error, and does not say that the answer has ended."""
    assert not decoder.ended
    again = None
    try:
        decoder.feed(b"\0")
    except CorruptResult as error:
        again = error
    assert again is not None


def _selected(rng: random.Random, columns: tuple[Column, ...], raw: bytes) -> str:
    decoder = ResultDecoder(columns)
    cut = rng.randrange(len(raw) + 1) if rng.random() < 0.5 else 0
    ended = ""
    try:
        decoder.feed(raw[:cut])
        decoder.feed(raw[cut:])
    except _EXPECTED as error:
        ended = type(error).__name__
        check_broken(decoder)
    assert decoder.pending_bytes <= 64 * len(raw) + 4096
    rows = decoder.take_batch()
    rows.validate(full=True)
    assert rows.num_rows == decoder.rows
    return ended or ("decoded" if decoder.ended else "open")
