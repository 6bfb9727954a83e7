"""What must be the same in each stream of a subscriber: what it said itself, and nothing else."""

from dataclasses import replace
from typing import Any

import grpc
import msgspec
import pytest

from catchment import world
from catchment.model.errors import ConfigError
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.ends import end_by
from catchment.serve.hub.said import Said, must_be_the_same
from catchment.serve.hub.subscribed import taken_over
from catchment.serve.rules.rule import Rule
from catchment.serve.server.calls import REASON
from catchment.serve.server.service import Streams
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.tables import Chosen
from tests.world.sim.serve.call import Aborted

RULES = (Rule("orders", "select id from orders"), Rule("shop.*", "-80"))
NOTHING, SOMETHING = Ask(), Ask(rules=RULES)


@pytest.mark.parametrize("ask", [NOTHING, SOMETHING, Ask(flags=Flags(minimize_skew=True))])
def test_heartbeats_and_places_may_differ(ask: Ask) -> None:
    kept = Said.of(ask).written
    flags = msgspec.structs.replace(ask.flags, heartbeat_interval=7)
    must_be_the_same("search", kept, Said.of(replace(ask, flags=flags, vgtid="current")))


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        (NOTHING, SOMETHING, "it began with no rules, and this stream asks for the rules orders select id"),
        (SOMETHING, NOTHING, "and this stream asks for no rules"),
        (
            SOMETHING,
            Ask(rules=RULES[::-1]),
            "it began with the rules orders select id from orders, shop.* -80",
        ),
        (NOTHING, Ask(flags=Flags(minimize_skew=True)), "asks for no rules and minimize_skew"),
        (Ask(rules=(Rule("t", of=2),)), Ask(rules=(Rule("t", of=2, index=1),)), "began with the rules t"),
    ],
)
def test_other_rows_are_refused(first: Ask, later: Ask, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("*", r"\*")):
        must_be_the_same("search", Said.of(first).written, Said.of(later))


@pytest.mark.parametrize("tables", [("shop.*",), ("shop.orders", "!shop.tmp")])
@pytest.mark.parametrize("ask", [NOTHING, SOMETHING])
def test_what_earlier_versions_kept_is_read(ask: Ask, tables: tuple[str, ...]) -> None:
    """They had the tables of the feed file in it, where the client gave no rules, and all flags."""
    before: list[Any] = [Chosen.of(ask.rules or tables), Flags(heartbeat_interval=5)]
    kept = msgspec.json.encode([before[0], {**msgspec.to_builtins(before[1]), "stop_on_reshard": False}])
    must_be_the_same("search", kept.decode(), Said.of(ask))
    with pytest.raises(ConfigError, match="it began with"):
        must_be_the_same("search", kept.decode(), Said.of(SOMETHING if ask is NOTHING else NOTHING))


class Context:
    """Of a call: what the handler says at its end."""

    def __init__(self) -> None:
        self.metadata: dict[str, str] = {}
        self.code: grpc.StatusCode | None = None

    def set_trailing_metadata(self, metadata: Any) -> None:
        self.metadata = dict(metadata)

    def invocation_metadata(self) -> Any:
        return ()

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.code = code
        raise Aborted(details)


class TakenOverFeeds:
    """Whose subscriber another client has."""

    def served(self, feed: str, authorization: str) -> Any:
        raise taken_over("search")


def test_whose_name_was_taken_is_not_told_to_go_on() -> None:
    """ABORTED asks clients to repeat: two of one name would throw each other out for ever."""
    handler: Any = Streams(TakenOverFeeds(), world.event()).handler()  # type: ignore[arg-type]
    context, call = Context(), type("Call", (), {"method": "/catchment.stream.v1.Streams/Stream"})
    with pytest.raises(Aborted):
        list(handler.service(call).unary_stream(type("Request", (), {"feed": "shop"}), context))
    assert context.code is grpc.StatusCode.FAILED_PRECONDITION
    assert context.metadata == {REASON: "taken_over"}
    assert "do not reconnect" in end_by(taken_over("search"), "shop").text
