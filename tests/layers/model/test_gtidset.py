"""Sets of MySQL's GTIDs, beside Python's sets of single GTIDs; a real server agrees where there is one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.gtidset import GtidSet, UuidGtid
from tests.world.servers.launch import PrivateMySQL

_UUIDS = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "ffffffff-0000-11e1-9e33-c80aa9429562")
_SINGLE = st.builds(UuidGtid, st.sampled_from(_UUIDS), st.sampled_from(("", "a", "_b1")), st.integers(1, 12))
_SINGLES = st.sets(_SINGLE, max_size=20)


def _set(singles: set[UuidGtid]) -> GtidSet:
    return GtidSet.of((g.uuid, g.tag, (g.number, g.number)) for g in singles)


@given(_SINGLES, _SINGLES, _SINGLE)
def test_a_set_of_gtids_is_a_set(a: set[UuidGtid], b: set[UuidGtid], one: UuidGtid) -> None:
    left, right = _set(a), _set(b)
    assert left.union(right) == _set(a | b)
    assert left.includes(right) == (a >= b)
    assert left.meets(right) == bool(a & b)
    assert (one in left) == (one in a)
    assert (left == right) == (a == b)


@given(_SINGLES)
def test_text_and_json_give_the_same_set_back(singles: set[UuidGtid]) -> None:
    whole = _set(singles)
    assert GtidSet.parse(str(whole)) == whole
    assert GtidSet.parse(str(whole).upper().replace(",", ",\n ")) == whole
    assert GtidSet.parse(",".join(map(str, singles))) == whole
    assert msgspec.json.decode(msgspec.json.encode(whole), type=GtidSet) == whole


@pytest.mark.parametrize(
    "text",
    [
        "0-1-5",
        f"{_UUIDS[0]}:0",
        f"{_UUIDS[0]}:5-4",
        f"{_UUIDS[0]}:1-",
        f"{_UUIDS[0]}:9x",
        f"{_UUIDS[0][:-1]}:1",
        f"{_UUIDS[0]}:1:{'t' * 33}:1",
        f"{_UUIDS[0]}:{2**63 - 1}",
    ],
)
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a|not an"):
        GtidSet.parse(text)


def test_a_server_reads_and_writes_sets_alike(mysql_97_server: PrivateMySQL) -> None:
    texts = [f"{_UUIDS[1]}:7:1-3:b:2:a:1-2:4", f"{_UUIDS[0]}:a:1,{_UUIDS[0]}:1-2,{_UUIDS[0]}:a:2"]
    for text in texts:
        ((said,),) = mysql_97_server.sql(f"SELECT GTID_SUBTRACT('{text}', '')")
        assert str(GtidSet.parse(said)) == str(GtidSet.parse(text)) == said.replace("\n", "")
    both = GtidSet.parse(texts[0]).union(GtidSet.parse(texts[1]))
    assert mysql_97_server.sql(f"SELECT GTID_SUBSET('{texts[1]}', '{both}')") == [(1,)]
