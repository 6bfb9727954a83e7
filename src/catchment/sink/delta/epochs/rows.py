"""Rows of the epochs table: how an epoch is written there, and read again (DESIGN 5).

Most rows say what has changed since a whole one of some epochs before, which they name with its digest
(model/records.py). So a reader needs two rows at most, and a whole row stays as long as one that builds on it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from catchment.model.differences import changed, merged
from catchment.model.epoch import Commit, EpochRow, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.records import Base, Link, OfLater, Unreadable, base_of, encoded, link_of, value_of

SCHEMA = pa.schema(
    [
        pa.field("feed", pa.string()),
        pa.field("epoch", pa.int64()),
        pa.field("committed_us", pa.int64()),
        pa.field("manifest", pa.string()),
        pa.field("versions", pa.string()),
        pa.field("digest", pa.string()),
        pa.field("fence", pa.int64()),
    ]
)
NAME = "epochs table"
# Built while one thread is there: msgspec 0.22 crashes the process where two threads build a decoder at once.
_decode_versions = msgspec.json.Decoder(dict[str, int | None]).decode

Record = Mapping[str, Any]


class RowBase(msgspec.Struct, frozen=True):
    """A whole row, on which others build."""

    manifest: Base[Manifest]
    versions: dict[str, int]


def encoded_row(row: EpochRow, base: RowBase | None) -> tuple[pa.Table, RowBase]:
    """A row as a table of one, and the base for those of later epochs."""
    known = None if base is None else base.manifest
    text, manifest = encoded(replace(row.manifest, deltas=()), known)
    versions: Mapping[str, int | None] = row.commit.versions
    if base is None or manifest.digest != base.manifest.digest:
        after = RowBase(manifest, row.commit.versions)
    else:
        after = RowBase(manifest, base.versions)
        versions = changed(base.versions, row.commit.versions)
    columns = {
        "feed": [row.manifest.feed],
        "epoch": [row.manifest.epoch],
        "committed_us": [row.commit.time_us],
        "manifest": [text.decode()],
        "versions": [msgspec.json.encode(versions).decode()],
        "digest": [row.commit.digest],
        "fence": [row.fence],
    }
    return pa.table(columns, schema=SCHEMA), after


class RowReader:
    """Decodes rows of one version of the table. `find` has the record of an epoch, None where there is none. The reader
    keeps the whole one that it met last, since its neighbours build on it."""

    def __init__(self, find: Callable[[int], Record | None]) -> None:
        self._find = find
        self._base: RowBase | None = None

    def row(self, record: Record) -> EpochRow:
        """The epoch that a record tells. Raises SinkError for one that cannot be read, or has a later version."""
        try:
            return self._row(record)
        except OfLater as fault:
            raise SinkError(f"{_where(record)} {fault}") from fault
        except (Unreadable, msgspec.DecodeError) as fault:
            raise SinkError(
                f"{_where(record)} {fault}; put the newest copy of the directory _catchment of the lake back"
            ) from fault

    def _row(self, record: Record) -> EpochRow:
        text = record["manifest"].encode()
        link = link_of(text)
        versions = _decode_versions(record["versions"])
        if link is None:
            manifest = value_of(text, None, Manifest)
            known: dict[str, int] = {}
        else:
            base = self._base_of(link)
            manifest = value_of(text, None if base is None else base.manifest, Manifest)
            known = {} if base is None else base.versions
        commit = Commit(record["epoch"], record["digest"], record["committed_us"], merged(known, versions))
        return EpochRow(manifest, commit, record["fence"])

    def _base_of(self, link: Link) -> RowBase | None:
        if self._base is None or self._base.manifest.digest != link.digest:
            found = self._find(link.epoch)
            if found is None:
                return None
            versions = merged({}, _decode_versions(found["versions"]))
            self._base = RowBase(base_of(found["manifest"].encode(), Manifest), versions)
        return self._base


def _where(record: Record) -> str:
    return f"{NAME}: feed {record['feed']}, the row of epoch {epoch_text(record['epoch'])}"
