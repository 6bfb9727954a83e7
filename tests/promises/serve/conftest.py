"""Shards, tables on them, servers of streams, and a certificate of one's own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.promises.serve.server import Caller, Running, feed_file, server_file, serving
from tests.promises.stream.conftest import Servers, servers

__all__ = ["servers"]


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """Tables `t` with three rows and `hidden` with one, on each shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)",
            "INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'c')",
            "CREATE TABLE hidden (id INT PRIMARY KEY)",
            "INSERT INTO hidden VALUES (1)",
            database=name,
        )
    return name


@pytest.fixture
def feed(tmp_path: Path, servers: Servers, schema: str) -> Path:
    """A feed that takes all tables but `hidden`."""
    return feed_file(tmp_path, servers, [f"{schema}.*", f"!{schema}.hidden"])


@pytest.fixture
def server(tmp_path: Path, feed: Path) -> Iterator[Running]:
    """A server of that feed, without TLS."""
    with serving(server_file(tmp_path, feed)) as one:
        yield one


@pytest.fixture
def callers() -> Iterator[Callable[..., Caller]]:
    """`callers(server, ...)` makes a client, which is closed after the test."""
    made: list[Caller] = []

    def make(server: Running, **more: Any) -> Caller:
        made.append(Caller(server.port, **more))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


@pytest.fixture
def caller(server: Running, callers: Callable[..., Caller]) -> Caller:
    """A client of `server`."""
    return callers(server)


@dataclass(frozen=True)
class Certificate:
    """PEM files of a server, and its authority's certificate."""

    certificate: Path
    key: Path
    authority: bytes

    def tls(self) -> dict[str, str]:
        """As a server's file has it."""
        return {"certificate": str(self.certificate), "key": str(self.key)}


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Of localhost, signed by itself."""
    directory = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (directory / "server.pem").write_bytes(pem)
    (directory / "server.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return Certificate(directory / "server.pem", directory / "server.key", pem)
