"""TLS files are read once, and again as soon as they are others."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import ConfigError, ConnectionLost
from catchment.model.source import Endpoint, Tls
from catchment.source.session import connect
from catchment.source.tls import context_of
from tests.world.servers.chosen import chosen_server


def certify(directory: Path, name: str) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that is its own authority, and its key."""
    cert, key = directory / f"{name}.pem", directory / f"{name}.key"
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    try:
        subprocess.run([*made, *subject], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl to make certificates with")
    return cert, key


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrivateServer, Path]]:
    """A server with a certificate of its own."""
    cert, key = certify(tmp_path_factory.mktemp("certified"), "server")
    with chosen_server(server_id=163, settings={"ssl_cert": str(cert), "ssl_key": str(key)}) as server:
        yield server, cert


def endpoint_of(server: PrivateServer, tls: Tls) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password, tls)


def test_files_are_read_once_for_all_logins(
    certified: tuple[PrivateServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, cert = certified
    read: list[str | None] = []
    create = ssl.create_default_context

    def counted(*, cafile: str | None = None) -> ssl.SSLContext:
        read.append(cafile)
        return create(cafile=cafile)

    monkeypatch.setattr(ssl, "create_default_context", counted)
    one, other = endpoint_of(server, Tls(ca=str(cert))), endpoint_of(server, Tls(verify=False))
    for _ in range(5):
        connect(one).close()
        connect(other).close()
    assert read == [str(cert), None]


def test_files_that_were_replaced_are_read_again(
    certified: tuple[PrivateServer, Path], tmp_path: Path
) -> None:
    server, cert = certified
    strange, key = certify(tmp_path, "strange")
    for ca in (tmp_path / "replaced.pem", tmp_path / "written.pem"):
        shutil.copy(cert, ca)
        endpoint = endpoint_of(server, Tls(ca=str(ca)))
        connect(endpoint).close()
        if ca.name == "written.pem":
            ca.write_bytes(strange.read_bytes())
        else:
            Path(shutil.copy(strange, tmp_path / "new.pem")).replace(ca)
        with pytest.raises(ConnectionLost, match="certificate verify failed"):
            connect(endpoint)
        shutil.copy(cert, ca)
        connect(endpoint).close()

    # A renewed certificate of the client whose key is not there yet, then is.
    mine, own_key = tmp_path / "mine.pem", tmp_path / "mine.key"
    shutil.copy(cert, mine)
    shutil.copy(key, own_key)
    endpoint = endpoint_of(server, Tls(ca=str(cert), cert=str(mine), key=str(own_key)))
    with pytest.raises(
        ConfigError, match=r"^shard a: tls\.cert .*mine\.pem and tls\.key .* are no certificate and its key"
    ):
        connect(endpoint)
    shutil.copy(strange, mine)
    assert context_of(endpoint) is context_of(endpoint)
    own_key.unlink()
    with pytest.raises(ConfigError, match=r"^shard a: tls\.cert"):
        context_of(endpoint)
