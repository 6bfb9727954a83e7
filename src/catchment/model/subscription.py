"""A subscriber of a server's streams, as it is kept while it is away."""

import msgspec


class Subscription(msgspec.Struct, frozen=True):
    """`vgtid`: up to where it has acknowledged, or where it began. `asked`: what it said itself of rows when it began
    (serve/hub/said.py).

    `generation`: how often it came; who came last has it. `acknowledged_us`: since 1970. `changes`: how often this was
    written, by which a server sees that another one did.
    """

    name: str
    vgtid: str
    asked: str
    generation: int
    acknowledged_us: int
    changes: int = 0
