"""The server of gRPC: listens with TLS, notices clients that are gone, and stops in order."""

import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, cast

import grpc

from catchment import world
from catchment.config.serving import ServeConfig, ServerTls
from catchment.model.errors import ConfigError
from catchment.serve.server.admission import Door, Gate
from catchment.serve.server.feeds import Served
from catchment.serve.server.service import Streams

# A vgtid of many shards and tables has some megabytes.
_REQUEST_BYTES: Final = 16 << 20
_METADATA_BYTES: Final = 16 << 10
_KEEPALIVE_MS: Final = 20_000
_ANSWER_MS: Final = 10_000
# Threads for calls that are refused, beside one for each client.
_SPARE: Final = 8
_STOP_SECONDS: Final = 5.0


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
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", _ANSWER_MS),
    )


class Server:
    """Serves feeds until it is stopped. `port`: where it listens. Raises ConfigError where it cannot."""

    def __init__(self, config: ServeConfig, doors: Mapping[str, Door[Served]]) -> None:
        self._hubs = [door.behind.hub for door in doors.values()]
        self.streams = Streams(doors)
        threads = config.clients_max * len(doors) + _SPARE
        self._pool = world.pool(threads, "serve")
        self._server = grpc.server(
            cast(ThreadPoolExecutor, self._pool),
            interceptors=[Gate(doors.values())],
            options=_options(),
            maximum_concurrent_rpcs=threads,
        )
        self._server.add_generic_rpc_handlers((self.streams.handler(),))
        self.port = self._listen(config)
        self._server.start()

    def stop(self) -> None:
        """End the streams: their clients may go on elsewhere."""
        self.streams.stop()
        self._server.stop(_STOP_SECONDS).wait()
        for hub in self._hubs:
            hub.stop()
        self._pool.shutdown()

    def _listen(self, config: ServeConfig) -> int:
        host = f"[{config.address}]" if ":" in config.address else config.address
        place = f"{host}:{config.port}"
        try:
            if config.tls is None:
                return self._server.add_insecure_port(place)
            return self._server.add_secure_port(place, _credentials(config.tls))
        except RuntimeError:
            raise ConfigError(
                f"port: cannot listen on {place}; choose a free port and an address of this host"
            ) from None


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    _must_belong_together(tls)
    return grpc.ssl_server_credentials([(_read("key", tls.key), _read("certificate", tls.certificate))])


def _must_belong_together(tls: ServerTls) -> None:
    """gRPC takes whatever it is given, and fails when a client comes."""
    for name, path in (("key", tls.key), ("certificate", tls.certificate)):
        _read(name, path)
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
