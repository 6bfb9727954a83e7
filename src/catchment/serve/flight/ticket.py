"""What a client of Arrow Flight asks for: a ticket, which is JSON."""

from typing import Any, Final

import msgspec

from catchment.config.table_patterns import pattern_of, takes
from catchment.model.errors import ConfigError
from catchment.model.slow import Slow
from catchment.model.table import TableId
from catchment.serve.hub.ask import Ask
from catchment.serve.rules.rule import Rule
from catchment.serve.stream.flags import AddedShards, Flags

# As large as a request over gRPC may be.
BYTES_MAX: Final = 16 << 20


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table of a feed. `vgtid`: as `catchment.stream` has it; empty: the rows that exist come first. `filter`, `of`
    and `index` as a rule has them. `slow`: what becomes of a client that is too slow. `added_shards` as flags
    have it."""

    feed: str
    table: str
    vgtid: Any = None
    filter: str = ""
    of: int = 1
    index: int = 0
    minimize_skew: bool = False
    slow: Slow | None = None
    added_shards: AddedShards = AddedShards.REFUSE

    @property
    def table_id(self) -> TableId:
        """The table. Raises ConfigError where it is no name with its schema."""
        schema, dot, name = self.table.partition(".")
        table = TableId(schema, name)
        if not (schema and dot and name and takes(("*.*",), table)):
            raise ConfigError(f"ticket: {self.table[:100]!r} is no table; name one as schema.table")
        return table

    @property
    def ask(self) -> Ask:
        """Raises ConfigError where the rule or a flag is malformed."""
        rule = Rule(pattern_of(self.table_id), self.filter, self.of, self.index)
        return Ask(
            self.vgtid,
            (rule,),
            Flags(minimize_skew=self.minimize_skew, added_shards=self.added_shards),
            self.slow,
        )


_TICKETS = msgspec.json.Decoder(Ticket)


def ticket_of(text: bytes) -> Ticket:
    """A ticket as it comes. Raises ConfigError."""
    if len(text) > BYTES_MAX:
        raise ConfigError(f"ticket: it has more than {BYTES_MAX:,} bytes")
    try:
        return _TICKETS.decode(text)
    except msgspec.DecodeError as fault:
        raise ConfigError(f"ticket: it is not JSON with feed, table and vgtid: {fault}") from None
