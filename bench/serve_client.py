"""Clients of a server of streams, in a process of their own: `bench.serve` starts it, and reads what they met.

A line of JSON says what they ask for, a later one how far they read. A line of theirs says that each of them has a
place in the stream, which one that begins "current" gets with its first message. They parse each message and look at
its last vgtid; rows are counted where that is asked for, since Python takes longer for it than the server for the row.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC

import grpc
import msgspec
from pyarrow import flight

from catchment.model.position import LogOffset, reaches
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.stream.vgtid import StreamCut

FEED = "bench"
TOKEN = "a-token-of-the-benchmarks"
READY = "ready"
_METHOD = "/catchment.stream.v1.Streams/Stream"
_MESSAGE_BYTES = 64 << 20


class Order(msgspec.Struct, frozen=True):
    """`port`: of gRPC, or of Arrow Flight where `arrow`. `counts`: the rows, too. `ages`: the second column is when
    its row was written; for so many seconds."""

    port: int
    table: str
    vgtid: str
    clients: int = 1
    arrow: bool = False
    minimize_skew: bool = False
    counts: bool = False
    ages: float = 0.0


class Target(msgspec.Struct, frozen=True):
    """Where the logs of all shards end, as far as is read."""

    at: dict[str, LogOffset]


class Met(msgspec.Struct, frozen=True):
    """When each client began and ended, in seconds since 1970; of all of them bytes, and rows where they were counted.
    `ages`: seconds from a row's commit until a client had it."""

    began: list[float]
    ended: list[float]
    nbytes: int
    rows: int
    ages: list[float]


@dataclass(frozen=True, slots=True)
class _Heard:
    nbytes: int
    vgtid: str = ""
    rows: int = 0


@dataclass
class _Client:
    order: Order
    target: "_Awaited"
    placed: threading.Event = field(default_factory=threading.Event)
    began: float = 0.0
    ended: float = 0.0
    nbytes: int = 0
    rows: int = 0
    ages: list[float] = field(default_factory=list)

    def run(self) -> None:
        messages = self._by_flight() if self.order.arrow else self._by_grpc()
        for heard in messages:
            self.nbytes += heard.nbytes
            self.rows += heard.rows
            self.ended = time.time()
            if self.order.ages:
                if self.ended - self.began > self.order.ages:
                    return
            elif heard.vgtid and self.target.reached(heard.vgtid):
                return

    def _by_grpc(self) -> Iterator[_Heard]:
        # Channels of one process share a connection otherwise.
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", _MESSAGE_BYTES))
        order = self.order
        with grpc.insecure_channel(f"127.0.0.1:{order.port}", options=options) as channel:
            grpc.channel_ready_future(channel).result(60)
            call = channel.unary_stream(
                _METHOD, request_serializer=pb.StreamRequest.SerializeToString, response_deserializer=bytes
            )
            flags = pb.Flags(minimize_skew=order.minimize_skew)
            asked = pb.StreamRequest(
                feed=FEED, vgtid=order.vgtid, rules=[pb.Rule(match=order.table)], flags=flags
            )
            self.began = time.time()
            for data in call(asked, metadata=(("authorization", f"Bearer {TOKEN}"),)):
                self.placed.set()
                yield self._parsed(data)

    def _parsed(self, data: bytes) -> _Heard:
        batch = pb.EventBatch.FromString(data)
        if self.order.ages:
            now = time.time()
            written = (row.after.values[1] for event in batch.events for row in event.rows.rows)
            self.ages += [now - value.datetime_value / 1e6 for value in written]
        rows = sum(len(event.rows.rows) for event in batch.events) if self.order.counts else 0
        return _Heard(len(data), batch.events[-1].vgtid.text, rows)

    def _by_flight(self) -> Iterator[_Heard]:
        order = self.order
        with flight.connect(f"grpc://127.0.0.1:{order.port}") as client:
            asked = {
                "feed": FEED,
                "table": order.table,
                "vgtid": order.vgtid,
                "minimize_skew": order.minimize_skew,
            }
            headers = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
            self.began = time.time()
            reader = client.do_get(flight.Ticket(json.dumps(asked).encode()), headers)
            assert reader.schema is not None  # the first message
            self.placed.set()
            for chunk in reader:
                if chunk.app_metadata:
                    yield _Heard(0, json.loads(chunk.app_metadata.to_pybytes()).get("text", ""))
                    continue
                if self.order.ages:
                    now = time.time()
                    written = chunk.data.column(1).to_pylist()
                    self.ages += [now - value.replace(tzinfo=UTC).timestamp() for value in written]
                yield _Heard(chunk.data.nbytes, rows=chunk.data.num_rows)


class _Awaited:
    """A target that may come later than the first messages."""

    def __init__(self) -> None:
        self._target: Target | None = None
        self._newest: dict[int, str] = {}

    def come(self, target: Target) -> None:
        self._target = target

    def reached(self, vgtid: str) -> bool:
        """Whether all rows up to the target have come."""
        if self._target is None:
            return False
        cut = msgspec.json.decode(vgtid, type=StreamCut).cut
        return cut.copied and all(
            reaches(state.position.at, self._target.at[shard]) for shard, state in cut.shards.items()
        )


def main() -> None:
    """Read an order and a target from standard input; print what the clients met."""
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    awaited = _Awaited()
    clients = [_Client(order, awaited) for _ in range(order.clients)]
    with ThreadPoolExecutor(order.clients) as pool:
        running = [pool.submit(client.run) for client in clients]
        threading.Thread(target=_take, args=(awaited,), daemon=True).start()
        for client, future in zip(clients, running, strict=True):
            while not client.placed.wait(0.1):
                if future.done():
                    future.result()
                    break
        print(READY, flush=True)
        for future in running:
            future.result()
    met = Met(
        [client.began for client in clients],
        [client.ended for client in clients],
        sum(client.nbytes for client in clients),
        sum(client.rows for client in clients),
        [age for client in clients for age in client.ages],
    )
    print(msgspec.json.encode(met).decode(), flush=True)


def _take(awaited: _Awaited) -> None:
    for line in sys.stdin:
        awaited.come(msgspec.json.decode(line, type=Target))


if __name__ == "__main__":
    main()
