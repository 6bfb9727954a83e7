"""Which rows of `_catchment/versions` are told on, of versions whose log was thinned out."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc


def told_on(rows: pa.Table, oldest: int, kept: Mapping[str, Sequence[int]]) -> pa.Table:
    """Rows from epoch `oldest` on, and older ones of versions that are kept epochs (`kept`, by feed, in order). Where
    later rows of a table lie elsewhere, one more may stay."""
    young = pc.greater_equal(rows["epoch"], oldest)
    old = rows.filter(pc.invert(young))
    if not kept or not old.num_rows:
        return rows.filter(young)
    names = ("feed", "table_name", "version", "epoch")
    places = sorted(zip(*(old[name].to_pylist() for name in names), range(old.num_rows), strict=True))
    stay: list[int] = []
    for (feed, _), group in groupby(places, key=lambda place: place[:2]):
        stay += _last_at(list(group), kept.get(feed, ()))
    return pa.concat_tables([rows.filter(young), old.take(pa.array(sorted(stay), pa.int64()))])


def _last_at(places: Sequence[tuple[str, str, int, int, int]], kept: Sequence[int]) -> list[int]:
    """Of a table's rows in order, those that are the last at one of the kept epochs: their places."""
    found: list[int] = []
    for number, (_, _, _, epoch, place) in enumerate(places):
        after = places[number + 1][3] if number + 1 < len(places) else None
        first = bisect_left(kept, epoch)
        if first < len(kept) and (after is None or kept[first] < after):
            found.append(place)
    return found
