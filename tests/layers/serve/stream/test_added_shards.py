"""Shards that a source has and a vgtid has not: added since, or left out on purpose."""

from collections.abc import Iterable

import pytest

from catchment.model.cut import Cut
from catchment.model.errors import ConfigError
from catchment.model.position import GtidList, LogOffset, Position, Server
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.serve.stream.added_shards import with_added, without_others
from catchment.serve.stream.flags import AddedShards
from catchment.serve.stream.source import Source
from catchment.serve.stream.tables import Chosen
from catchment.serve.stream.vgtid import StreamCut, given_before, is_later, written

CHOSEN = Chosen()


def source(*shards: str) -> Source:
    return Source({f"ks/{name}": Endpoint(f"ks/{name}", "h", 3306, "u", "p") for name in shards})


def stands(shards: Iterable[str], epoch: int = 1, at: int = 100, left_out: tuple[str, ...] = ()) -> StreamCut:
    where = LogOffset("log.000001", at)
    states = {
        f"ks/{name}": ShardState(Position(where, 1, Server(number, "h", 3306, ""), GtidList()), where)
        for number, name in enumerate(shards)
    }
    return StreamCut(Cut(epoch, 1, states), left_out=left_out)


@pytest.mark.parametrize("choice", AddedShards)
def test_the_same_shards_need_no_choice(choice: AddedShards) -> None:
    assert with_added(stands("ab"), source("a", "b"), CHOSEN, choice) == (stands("ab"), [])


def test_a_shard_that_came_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"it stands for ks/a, ks/b, and the source has got ks/c since"):
        with_added(stands("ab"), source("a", "b", "c"), CHOSEN, AddedShards.REFUSE)


def test_a_shard_that_is_ignored_is_left_out_from_then_on() -> None:
    there = source("a", "b", "c")
    cut, copied = with_added(stands("ab"), there, CHOSEN, AddedShards.IGNORE)
    assert copied == []
    assert given_before(written(cut)).left_out == ("ks/c",)
    assert with_added(cut, there, CHOSEN, AddedShards.REFUSE) == (cut, [])
    with pytest.raises(ConfigError, match="has got ks/d since"):
        with_added(cut, source("a", "b", "c", "d"), CHOSEN, AddedShards.REFUSE)


def test_a_shard_that_went_and_came_back_is_new() -> None:
    cut = without_others(without_others(stands("a"), source("a", "b")), source("a"))
    with pytest.raises(ConfigError, match="has got ks/b since"):
        with_added(cut, source("a", "b"), CHOSEN, AddedShards.REFUSE)


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        (stands("ab", 2, 200), stands("ab"), True),
        (stands("ab", 2), stands("ab"), True),
        (stands("ab", 1, 200), stands("ab"), False),
        (stands("ab", 2, 50), stands("ab"), False),
        (stands("abc", 2, 200), stands("ab"), True),
        (stands("abc", 2, 50), stands("ab"), False),
        (stands("ab", 2, 200), stands("abc"), False),
    ],
)
def test_a_stream_may_get_more_shards_on_its_way(one: StreamCut, other: StreamCut, later: bool) -> None:
    assert is_later(one, other) is later
