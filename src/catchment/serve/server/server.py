"""The server: listens with TLS, notices clients that are gone, and stops in order."""

import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, cast

import grpc

from catchment import world
from catchment.config.serving import ServeConfig, ServerTls
from catchment.model.errors import ConfigError
from catchment.page.server import Server as PageServer
from catchment.serve.server.admission import Gate
from catchment.serve.server.feeds import Feeds
from catchment.serve.server.flight import Tables
from catchment.serve.server.metrics import registry_of
from catchment.serve.server.page import page_of
from catchment.serve.server.service import Streams
from catchment.serve.server.shown import shown

# A vgtid of many shards and tables has some megabytes.
_REQUEST_BYTES: Final = 16 << 20
_METADATA_BYTES: Final = 16 << 10
_KEEPALIVE_MS: Final = 20_000
_ANSWER_MS: Final = 10_000
# Threads for calls that are refused, beside one for each client.
_SPARE: Final = 8
_STOP_SECONDS: Final = 5.0
_REMEDY: Final = "choose a free port and an address of this host"

# Pairs of a key and a certificate.
Certificates = list[tuple[bytes, bytes]]


def _options() -> Sequence[tuple[str, int]]:
    return (
        ("grpc.max_receive_message_length", _REQUEST_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", _METADATA_BYTES),
        # Two servers on one port would share its clients, and a slip in a file would not be noticed.
        ("grpc.so_reuseport", 0),
        # A client whose machine is gone does not say so. One that rests may ask whether the server is there.
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _ANSWER_MS),
        ("grpc.http2.ping_timeout_ms", _ANSWER_MS),  # the one that counts behind a proxy; else it is a minute
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", _ANSWER_MS),
    )


class Server:
    """Serves feeds until it is stopped. Raises ConfigError where it cannot listen."""

    def __init__(self, config: ServeConfig, feeds: Feeds) -> None:
        self._feeds = feeds
        certificates = [] if config.tls is None else [_pair(config.tls)]
        self._stopping = world.event()
        threads = config.clients_max * len(feeds.names) + _SPARE
        self._pool = world.pool(threads, "serve")
        self._server = grpc.server(
            cast(ThreadPoolExecutor, self._pool),
            interceptors=[Gate(feeds.open_to)],
            options=_options(),
            maximum_concurrent_rpcs=threads,
        )
        self._server.add_generic_rpc_handlers((Streams(feeds, self._stopping).handler(),))
        self._listen("port", config.address, config.port, certificates)
        if config.flight is not None:
            self._server.add_generic_rpc_handlers((Tables(feeds, self._stopping).handler(),))
            self._listen("flight.port", config.address, config.flight.port, certificates)
        self._page = _page(config, feeds)
        self._server.start()

    def stop(self) -> None:
        """End the streams: their clients may go on elsewhere."""
        self._stopping.set()
        if self._page is not None:
            self._page.stop()
        self._server.stop(_STOP_SECONDS).wait()
        self._feeds.stop()
        self._pool.shutdown()

    def _listen(self, name: str, address: str, port: int, certificates: Certificates) -> None:
        place = f"{_host(address)}:{port}"
        try:
            if certificates:
                self._server.add_secure_port(place, grpc.ssl_server_credentials(certificates))
            else:
                self._server.add_insecure_port(place)
        except RuntimeError:
            raise ConfigError(f"{name}: cannot listen on {place}; {_REMEDY}") from None


def _page(config: ServeConfig, feeds: Feeds) -> PageServer | None:
    if config.status.port is None:
        return None
    now = partial(shown, feeds)
    return PageServer(
        "status.port", config.status.address, config.status.port, page_of(now, registry_of(now))
    )


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _pair(tls: ServerTls) -> tuple[bytes, bytes]:
    """Key and certificate."""
    pair = _read("key", tls.key), _read("certificate", tls.certificate)
    _must_belong_together(tls)
    return pair


def _must_belong_together(tls: ServerTls) -> None:
    """gRPC takes whatever it is given, and fails when a client comes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except _Encrypted:
        raise ConfigError(f"tls.key: {tls.key} is encrypted; give a key without a passphrase") from None
    except ssl.SSLError as fault:
        raise ConfigError(
            f"tls: {tls.certificate} and {tls.key} are no certificate with its key, as PEM files ({fault.reason})"
        ) from None


class _Encrypted(Exception):
    """A key asks for its passphrase."""


def _no_password() -> str:
    raise _Encrypted


def _read(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise ConfigError(f"tls.{name}: cannot read {path}: {fault.strerror}") from None
