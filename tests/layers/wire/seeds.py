"""Seeds of the fuzzer: dumps of one group each, with the event (or the part of it) that is to be changed.

A seed is named by what it reaches: `event 31`, `inner event 19` (of a transaction payload), `uuid`, `json int16`,
`declared int` (the log leaves to a definition what the column is), `altered`.
"""

import struct

import msgspec

from catchment.model.definition import Definition
from catchment.model.position import LogOffset
from catchment.model.table import Kind, TableId
from tests.layers.wire.events import HEADER, kind_of, packet, seal
from tests.layers.wire.recorded import Recording
from tests.layers.wire.recordings import PAYLOAD, PLAIN, unpacked
from tests.layers.wire.small_groups import GROUPS, WITHOUT_PLACES
from tests.layers.wire.small_tables import ALTERED, DIFFS, NAME_OF

ARTIFICIAL = 0x20
QUERY, ROTATE, TABLE_MAP = 2, 4, 19
ROWS = (23, 24, 25, 30, 31, 32, 39)
PARTIAL = 39
BEGINS = (33, 34, 42, 162)  # events that begin a group
PACKED = {166: 169, 167: 170, 168: 171}  # compressed row events: their second version is not written
MOST = 4096  # bytes of a seed; larger ones are for runs of whole dumps
EACH = 40  # seeds of one name
Kinds = dict[TableId, dict[str, Kind]]
Definitions = dict[TableId, Definition]
DECLARED = "declared "
TWO_FILES = "group cut off, and the next file"
WHOLE = (*GROUPS, WITHOUT_PLACES)  # each event of such a group is changed
KINDS = {"uuid": Kind.UUID, "inet4": Kind.INET4, "inet6": Kind.INET6}


class Piece(msgspec.Struct, frozen=True):
    """The head of a dump and one group (or an event between groups), from its own place. `definitions`: of tables that
    the log does not describe, as of there."""

    events: tuple[bytes, ...]
    place: LogOffset
    name: str = ""
    definitions: Definitions = {}

    @property
    def size(self) -> int:
        return sum(map(len, self.events))


class Seed(msgspec.Struct, frozen=True):
    """`target` stands between `head` and `tail`, which are packets; changes are made from `first` to `last`."""

    name: str
    head: bytes
    target: bytes
    tail: bytes
    number: int
    first: int
    last: int
    place: LogOffset
    kinds: Kinds
    definitions: Definitions = {}


def pieces(recording: Recording) -> list[Piece]:
    """The groups of a dump, and the events between them."""
    found = []
    open_group: list[bytes] = []
    head = b""
    for event in recording.events:
        if kind_of(event) == ROTATE and event[17] & ARTIFICIAL:
            rotate, head = event, b""
            open_group = []
        elif not head:
            head = event
        elif kind_of(event) in BEGINS or not open_group or kind_of(event) == ROTATE:
            open_group = [event]
            found.append((rotate, head, open_group))
        else:
            open_group.append(event)
    return [placed_alone(recording.name, *parts) for parts in found]


def placed_alone(name: str, rotate: bytes, head: bytes, group: list[bytes]) -> Piece:
    size, end = struct.unpack_from("<II", group[0], 9)
    place = LogOffset(rotate[HEADER + 8 : -4].decode(), end - size)
    moved = bytearray(rotate)
    moved[HEADER : HEADER + 8] = struct.pack("<Q", place.offset)
    copy = bytearray(head)
    copy[13:17] = bytes(4)  # a copy in a dump from the middle has no place
    return Piece((seal(moved), seal(copy), *group), place, name)


def moved_by(event: bytes, more: int, kind: int | None = None, body: bytes | None = None) -> bytes:
    """The event of another type or with another body, `more` bytes further on in its file."""
    found = bytearray(event if body is None else event[:HEADER] + body + event[-4:])
    found[4] = kind_of(event) if kind is None else kind
    (end,) = struct.unpack_from("<I", event, 13)
    found[13:17] = struct.pack("<I", end + more)
    return seal(found)


def replaced(piece: Piece, i: int, kind: int, body: bytes) -> Piece:
    """One event of a piece replaced by another, those behind it moved along."""
    more = len(body) + HEADER + 4 - len(piece.events[i])
    events = [moved_by(event, more) for event in piece.events[i:]]
    events[0] = moved_by(piece.events[i], more, kind, body)
    return msgspec.structs.replace(piece, events=(*piece.events[:i], *events))


def inserted(piece: Piece, kind: int, body: bytes, flags: int = 0) -> Piece:
    """The head of the piece, and one event of `kind` in place of the group."""
    event = bytearray(piece.events[2][:HEADER] + body + bytes(4))
    event[17:19] = struct.pack("<H", flags)
    event[4] = kind
    event[13:17] = struct.pack("<I", piece.place.offset + (0 if flags & ARTIFICIAL else len(event)))
    return msgspec.structs.replace(piece, events=(*piece.events[:2], seal(event)))


def never_written(found: list[Piece]) -> list[Piece]:
    """Events that need a cluster, an idle or encrypted server, or that no server of today writes: made of real ones."""
    made = []
    for server in ("MariaDB", "MySQL"):
        one = min((p for p in found if server in p.name), key=lambda p: p.size)
        made.append(inserted(one, 27, one.place.file.encode(), ARTIFICIAL))
        made.append(inserted(one, 3, b""))
        made.append(inserted(one, 26, b"\1\0\4lost"))
        if server == "MariaDB":
            made.append(inserted(one, 164, b"\1\1\0\0\0" + bytes(range(12))))
            continue
        made.append(inserted(one, 41, b"\1\x0d" + one.place.file.encode() + b"\0", ARTIFICIAL))
        made.append(inserted(one, 28, b"nothing", 0x80))
        made.append(inserted(one, 36, b"\1" + bytes(17) + b"12345678"))
        made.append(inserted(one, 37, b"16000000:1" + bytes(30) + bytes(12)))
        gtid = next(p for p in found if server in p.name and kind_of(p.events[2]) == 33)
        made.append(replaced(gtid, 2, 34, gtid.events[2][HEADER:-4]))
    for piece in found:
        for i, event in enumerate(piece.events):
            if kind_of(event) in PACKED:
                body = event[HEADER:-4]
                made.append(replaced(piece, i, PACKED[kind_of(event)], body[:8] + b"\2\0" + body[8:]))
            elif kind_of(event) == QUERY and b"ROLLBACK TO `u`" in event:
                body = event[HEADER:-4].replace(b"ROLLBACK TO `u`", b"RELEASE SAVEPOINT u")
                made.append(replaced(piece, i, QUERY, body))
            elif kind_of(event) == 17:
                made.append(replaced(piece, i, 9, event[HEADER:-4]))
                made.append(replaced(piece, i, 11, event[HEADER : HEADER + 4]))
    return made


def large_json(found: list[Piece]) -> list[Piece]:
    """Arrays and objects in the format of documents of more than 64 KiB, which are small here."""
    made = []
    documents = {
        "json large array": b"\3" + struct.pack("<IIBIBI", 2, 20, 7, 70000, 12, 18) + b"\1x",
        "json large object": b"\1" + struct.pack("<IIIHBI", 1, 21, 19, 1, 8, 70000) + b"ab",
    }
    piece = next(p for p in found if label_of(p) == "json array")
    i = next(i for i, event in enumerate(piece.events) if kind_of(event) in ROWS)
    body = piece.events[i][HEADER:-4]
    start = 8 + 2 + 1 + 1 + 1 + 4  # post header, its extra length, columns, present, nulls, id
    for name, document in documents.items():
        changed = replaced(piece, i, 30, body[:start] + struct.pack("<I", len(document)) + document)
        made.append(msgspec.structs.replace(changed, name=name))
    return made


def plain_pieces(recording: Recording) -> list[Piece]:
    """Groups of tables that the log does not describe; an ALTER TABLE stands before the rows that follow it."""
    found = []
    alter = None
    for piece in pieces(recording):
        if any(kind_of(event) == QUERY and b"ALTER TABLE" in event for event in piece.events):
            alter = piece
            continue
        table = table_id_of(piece)
        if table not in recording.definitions:
            continue
        events, place = piece.events, piece.place
        if alter is not None and table.name.startswith(ALTERED):
            events, place = alter.events + events[2:], alter.place
        found.append(Piece(events, place, PLAIN, {table: recording.definitions[table]}))
    return found


def over_two_files(piece: Piece) -> Piece:
    """The group without its last event, and the whole group in the next file: a server that was killed."""
    rotate, head, *group = piece.events
    stem, _, number = piece.place.file.partition(".")
    name = f"{stem}.{int(number) + 1:06}".encode()
    following = seal(rotate[:HEADER] + struct.pack("<Q", 4) + name + bytes(4))
    again = [moved_by(event, 4 - piece.place.offset) for event in group]
    return Piece((rotate, head, *group[:-1], following, head, *again), piece.place, TWO_FILES)


def table_id_of(piece: Piece) -> TableId:
    """The table of the first table map; one without a name when there is none."""
    for event in piece.events:
        if kind_of(event) == TABLE_MAP:
            at = HEADER + 8
            schema = event[at + 1 : at + 1 + event[at]]
            at += 1 + event[at] + 1
            return TableId(schema.decode(), event[at + 1 : at + 1 + event[at]].decode())
    return TableId("", "")


def label_of(piece: Piece) -> str:
    """The type whose rows the piece carries, when its table is of one type."""
    if piece.name in ("json large array", "json large object"):
        return piece.name
    return NAME_OF.get(table_id_of(piece).name.partition("_")[0], "")


def seeds(made: list[Recording]) -> list[Seed]:
    """All seeds of the recordings, the smallest EACH of a name. With MySQL only where there is one."""
    found = [piece for recording in made if not recording.definitions for piece in pieces(recording)]
    if any("MySQL" in recording.name for recording in made):
        found += large_json(found)
        found += never_written(found)
    packed = [(p, i) for p in found for i, event in enumerate(p.events) if kind_of(event) == PAYLOAD]
    for piece, i in packed:
        plain = unpacked(piece.events[i])
        found.append(replaced(piece, i, PAYLOAD, plain[HEADER:-4]))
    found += [over_two_files(piece) for piece in found if label_of(piece) in ("int", "group of two tables")]
    found += [piece for recording in made if recording.definitions for piece in plain_pieces(recording)]
    by_name: dict[str, list[Seed]] = {}
    for piece in sorted(found, key=lambda p: p.size):
        if piece.size > MOST:
            continue
        for seed in seeds_of(piece):
            kept = by_name.setdefault(seed.name, [])
            if len(kept) < EACH:
                kept.append(seed)
    return [seed for kept in by_name.values() for seed in kept]


def seeds_of(piece: Piece) -> list[Seed]:
    if piece.definitions:
        return plain_seeds_of(piece)
    if piece.name == TWO_FILES:
        return [seed_of(piece, i, TWO_FILES) for i in range(2, len(piece.events))]
    found = []
    label = label_of(piece)
    of_label = () if not label else (PARTIAL,) if label in DIFFS else ROWS
    for i, event in enumerate(piece.events):
        found.append(seed_of(piece, i, f"event {kind_of(event)}"))
        if i > 1 if label in WHOLE else kind_of(event) in of_label:
            found.append(seed_of(piece, i, label))
        if kind_of(event) == PAYLOAD:
            found += inner(piece, i)
    return found


def plain_seeds_of(piece: Piece) -> list[Seed]:
    """Table map and rows that need a definition, and the ALTER TABLE that changes it."""
    (table,) = piece.definitions
    name = ALTERED if table.name.startswith(ALTERED) else DECLARED + label_of(piece)
    kinds = (TABLE_MAP, *ROWS, *((QUERY,) if name == ALTERED else ()))
    return [seed_of(piece, i, name) for i, event in enumerate(piece.events) if kind_of(event) in kinds]


def seed_of(piece: Piece, i: int, name: str, part: tuple[int, int] | None = None) -> Seed:
    packets = [packet(n + 1, b"\0" + event) for n, event in enumerate(piece.events)]
    tail = b"".join(packets[i + 1 :]) + packet(1 + len(packets), b"\xfe\0\0\2\0")
    first, last = part or (HEADER, len(piece.events[i]) - 4)
    kind = KINDS.get(label_of(piece))
    kinds = {table_id_of(piece): {"c": kind}} if kind else {}
    head = b"".join(packets[:i])
    return Seed(name, head, piece.events[i], tail, i + 1, first, last, piece.place, kinds, piece.definitions)


def inner(piece: Piece, i: int) -> list[Seed]:
    """The events in a payload that is not compressed; none in a compressed one."""
    event = piece.events[i]
    if b"\x28\xb5\x2f\xfd" in event:
        return []
    at = HEADER + len(b"\x01\x09" + bytes(9) + b"\x02\x03\xfc\xff\x00" + b"\x03\x09" + bytes(9) + b"\x00")
    found = []
    while at < len(event) - 4:
        (size,) = struct.unpack_from("<I", event, at + 9)
        found.append(seed_of(piece, i, f"inner event {event[at + 4]}", (at, at + size)))
        at += size
    return found
