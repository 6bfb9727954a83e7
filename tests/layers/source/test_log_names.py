"""Which files have the same base name, and which GTIDs may come next."""

import pytest

from catchment.model.gtidset import GtidSet
from catchment.model.position import GtidList
from catchment.source.log_names import may_follow, rest_of_name

FILES = ["binlog.000001", "binlog.000002", "other.000001", "binlog.000003", "binlog.000004"]


@pytest.mark.parametrize(
    ("file", "rest"),
    [
        ("binlog.000001", (["binlog.000001", "binlog.000002"], "other.000001")),
        ("binlog.000002", (["binlog.000002"], "other.000001")),
        ("other.000001", (["other.000001"], "binlog.000003")),
        ("binlog.000003", None),
        ("binlog.000004", None),
        ("binlog.000000", None),
        ("gone.000001", None),
    ],
)
def test_a_name_ends_where_the_index_goes_on_with_another(
    file: str, rest: tuple[list[str], str] | None
) -> None:
    assert rest_of_name(FILES, file) == rest


@pytest.mark.parametrize(
    ("now", "may"),
    [("0-1-9,1-1-3", True), ("0-1-5", True), ("", True), ("0-1-10", False), ("0-1-9,2-1-1", False)],
)
def test_a_mariadb_may_begin_where_it_left_off_under_that_name(now: str, may: bool) -> None:
    assert may_follow(GtidList.parse("0-1-9,1-1-3"), GtidList.parse(now)) is may


def test_a_mysql_begins_with_all_that_it_has_executed() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    known = GtidSet.parse(f"{uuid}:1-9")
    assert may_follow(known, GtidSet.parse(f"{uuid}:1-9"))
    assert not may_follow(known, GtidSet.parse(f"{uuid}:1-8"))
    assert not may_follow(known, GtidSet.parse(f"{uuid}:1-10"))
