"""Clients of a server in one process, each in a thread: healthy ones that tell what they have, slow and dead ones.

Standard input has an order as a line of JSON; standard output has a line for each vgtid that is judged. A healthy
client makes something of events when their vgtid comes, all at once, and goes on there at the next server when one
ends its stream.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import grpc
import msgspec
from pyarrow import flight

from catchment.model.table import TableId
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.stream.events import Restart, Row, VGtid
from tests.promises.serve.ledger import Ledger, Sums, Wrong
from tests.promises.serve.server import FEED, METHOD, TOKEN
from tests.world.streamed import Reading

# A client that reads a message a second.
_SLOW_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 0.2
_MESSAGE_BYTES: Final = 64 << 20
# One of so many vgtids is judged, the same for all clients that hear one reader.
_JUDGED: Final = 8
_CHANGES: Final = {"insert": False, "delete": True, "update_preimage": True, "update_postimage": False}

Told = Row | Restart | VGtid


class Place(msgspec.Struct, frozen=True):
    """A server: ports of gRPC and of Arrow Flight."""

    port: int
    arrow: int


class Order(msgspec.Struct, frozen=True):
    """`how`: `healthy`, `slow` or `dead`, of each `grpc` and `arrow` so many. `table`: of those by Arrow Flight. They
    begin at the first of `places`."""

    how: str
    name: str
    places: list[Place]
    authority: str
    keys: dict[str, list[str]]
    rules: list[str]
    table: str
    grpc: int
    arrow: int


class Seen(msgspec.Struct, frozen=True):
    """A client at a vgtid. `at`: when, in seconds since 1970, and `lag`: the age of the vgtid then. `place`: by shard,
    of the log. `end`: how its stream ended, `fault`: what must not be, instead of all else."""

    client: str
    at: float = 0.0
    lag: float = 0.0
    copied: bool = False
    place: dict[str, tuple[str, int]] = {}
    sums: Sums = {}
    end: str = ""
    fault: str = ""


class Client:
    """One of them. `arrow`: by Arrow Flight."""

    def __init__(self, order: Order, number: int, *, arrow: bool) -> None:
        self._order = order
        self._arrow = arrow
        self._name = f"{order.name}-{'flight' if arrow else 'grpc'}-{number}"
        keys = {table: tuple(key) for table, key in order.keys.items()}
        self._ledger = Ledger({order.table: keys[order.table]} if arrow else keys)
        self._vgtid = ""

    def run(self) -> None:
        """Until the process ends."""
        if self._order.how == "dead":
            self._never_reads()
        for place in cycle(self._order.places):
            try:
                told: list[Told] = []
                for event in self._events(place):
                    told.append(event)
                    if isinstance(event, VGtid):
                        self._settle(told, event)
                        told = []
            except (grpc.RpcError, flight.FlightError, OSError) as ended:
                _say(Seen(self._name, time.time(), end=_first_line(ended)))
                time.sleep(_AGAIN_SECONDS)
            except Exception as fault:
                _say(Seen(self._name, fault=f"{type(fault).__name__}: {fault}"))
                return

    def _settle(self, told: Sequence[Told], vgtid: VGtid) -> None:
        """Make something of the events up to a vgtid, which the client keeps with it."""
        for event in told:
            if isinstance(event, Restart):
                raise Wrong(f"{event.shard} {event.table} began again: {event.reason}")
            if isinstance(event, Row):
                self._ledger.take(event)
        self._vgtid = vgtid.text
        judged = self._order.how == "healthy" and crc32(vgtid.text.encode()) % _JUDGED == 0
        if self._ledger.copied and not judged:
            return  # to read a vgtid takes longer than all else
        shards = json.loads(vgtid.text)["cut"]["shards"]
        copies = [copy for state in shards.values() for copy in state["copies"]]
        self._ledger.copied = all(copy.get("done", False) for copy in copies)
        now = time.time()
        if judged:
            places = {name.partition("/")[2]: state["position"]["at"] for name, state in shards.items()}
            place = {shard: (at["file"], at["offset"]) for shard, at in places.items()}
            lag = now - vgtid.time_us / 1e6
            _say(Seen(self._name, now, lag, self._ledger.copied, place, self._ledger.sums))

    def _events(self, place: Place) -> Iterator[Told]:
        return self._by_flight(place) if self._arrow else self._by_grpc(place)

    def _by_grpc(self, place: Place) -> Iterator[Told]:
        with self._channel(place) as channel:
            reading = Reading()
            for batch in self._call(channel):
                if self._order.how == "slow":
                    time.sleep(_SLOW_SECONDS)
                yield from (one for one in reading.events(batch) if isinstance(one, Row | Restart | VGtid))

    def _by_flight(self, place: Place) -> Iterator[Told]:
        before: dict[str, Any] | None = None
        with self._connected(place) as client:
            for chunk in self._asked(client):
                if self._order.how == "slow":
                    time.sleep(_SLOW_SECONDS)
                if chunk.app_metadata:
                    yield from self._beside(json.loads(chunk.app_metadata.to_pybytes()))
                for row in chunk.data.to_pylist():
                    gone, kind = _CHANGES[row["_change_type"]], row["_change_type"]
                    if kind == "update_preimage":
                        before = row
                        continue
                    shard = row["_shard"].partition("/")[2]
                    was, before = (row if gone else before), None
                    yield Row("", shard, self._table, was, None if gone else row)

    def _beside(self, told: dict[str, Any]) -> Iterator[Told]:
        if told["type"] == "vgtid":
            yield VGtid(told["text"], told["time_us"])
        elif told["type"] == "restart":
            yield Restart("", told["shard"], self._table, told["reason"], gone=False)

    @property
    def _table(self) -> TableId:
        return TableId(*self._order.table.split("."))

    def _channel(self, place: Place) -> grpc.Channel:
        # Channels of one process share a connection otherwise.
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", _MESSAGE_BYTES))
        trusted = grpc.ssl_channel_credentials(Path(self._order.authority).read_bytes())
        return grpc.secure_channel(f"localhost:{place.port}", trusted, options=options)

    def _call(self, channel: grpc.Channel) -> Any:
        call = channel.unary_stream(
            METHOD,
            request_serializer=pb.StreamRequest.SerializeToString,
            response_deserializer=pb.EventBatch.FromString,
        )
        rules = [pb.Rule(match=rule) for rule in self._order.rules]
        request = pb.StreamRequest(
            feed=FEED, vgtid=self._vgtid, rules=rules, message_bytes_max=_MESSAGE_BYTES
        )
        return call(request, metadata=(("authorization", f"Bearer {TOKEN}"),), wait_for_ready=False)

    def _connected(self, place: Place) -> Any:
        authority = Path(self._order.authority).read_bytes()
        return flight.connect(f"grpc+tls://localhost:{place.arrow}", tls_root_certs=authority)

    def _asked(self, client: Any) -> Any:
        ticket = {"feed": FEED, "table": self._order.table, "vgtid": self._vgtid}
        options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
        return client.do_get(flight.Ticket(json.dumps(ticket).encode()), options)

    def _never_reads(self) -> None:
        place = self._order.places[0]
        if self._arrow:
            client = self._connected(place)
            kept: Any = self._asked(client)
        else:
            channel = self._channel(place)
            kept = self._call(channel)
            next(kept)
        threading.Event().wait()
        del kept


def _first_line(ended: Exception) -> str:
    return (ended.details() or "" if isinstance(ended, grpc.Call) else str(ended)).partition("\n")[0]


_printing = threading.Lock()
_encoder = msgspec.json.Encoder()


def _say(seen: Seen) -> None:
    line = _encoder.encode(seen).decode()
    with _printing:
        print(line, flush=True)


def main() -> None:
    """The clients of one order."""
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    clients = [Client(order, number, arrow=False) for number in range(order.grpc)]
    clients += [Client(order, number, arrow=True) for number in range(order.arrow)]
    with ThreadPoolExecutor(len(clients)) as pool:
        for client in clients:
            pool.submit(client.run)


if __name__ == "__main__":
    main()
