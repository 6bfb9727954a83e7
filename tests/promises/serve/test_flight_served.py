"""Arrow Flight beside gRPC: the same certificate, the same tokens, the same feeds, and an end in order."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from tests.promises.serve.conftest import Certificate
from tests.promises.serve.server import FEED, TOKEN, free_port, process, server_file, serving
from tests.promises.serve.test_languages import EXAMPLES
from tests.promises.stream.conftest import Servers
from tests.world.patience import PATIENCE_SECONDS
from tests.world.servers.chosen import chosen_server


def read(
    port: int, authority: bytes, ticket: dict[str, Any], token: str = TOKEN
) -> flight.FlightStreamReader:
    client = flight.connect(f"grpc+tls://localhost:{port}", tls_root_certs=authority)
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())], timeout=200)
    return client.do_get(flight.Ticket(json.dumps({"feed": FEED, **ticket}).encode()), options)


@pytest.mark.promise("Arrow Flight reads a table of the lake")
def test_a_table(tmp_path: Path, feed: Path, schema: str, certificate: Certificate) -> None:
    more = {"tls": certificate.tls(), "flight": {"port": free_port()}}
    with serving(server_file(tmp_path, feed, **more)) as server:
        port, trusted = server.flight_port, certificate.authority
        rows = 0
        for chunk in read(port, trusted, {"table": f"{schema}.t"}):
            rows += chunk.data.num_rows
            if rows == 9:
                break
        with pytest.raises(flight.FlightUnauthenticatedError, match="no feed of that name is open"):
            read(port, trusted, {"table": f"{schema}.t"}, token="another-token-of-somebody").read_chunk()
        with pytest.raises(Exception, match="no shard has such a table"):
            read(port, trusted, {"table": f"{schema}.hidden"}).read_chunk()
        with pytest.raises(flight.FlightError):
            flight.connect(f"grpc://localhost:{port}").do_get(flight.Ticket(b"{}")).read_chunk()


def test_a_shard_that_is_away_is_told_without_its_address(
    tmp_path: Path, schema: str, certificate: Certificate, feed: Path
) -> None:
    with chosen_server(server_id=153) as gone:
        text = feed.read_text()
        begun = text.index("port: ")
        feed.write_text(text[:begun] + f"port: {gone.port}" + text[text.index("\n", begun) :])
        port = gone.port
    more = {"tls": certificate.tls(), "flight": {"port": free_port()}}
    with serving(server_file(tmp_path, feed, **more)) as server:
        with pytest.raises(flight.FlightUnavailableError) as ended:
            read(server.flight_port, certificate.authority, {"table": f"{schema}.t"}).read_chunk()
        assert "cannot be read now; try again with the last vgtid" in str(ended.value)
        assert str(port) not in str(ended.value)


@pytest.mark.wide
@pytest.mark.mariadb("sequences")
def test_sigterm_with_a_client_that_does_not_read(
    tmp_path: Path, feed: Path, servers: Servers, schema: str, certificate: Certificate
) -> None:
    """More waits for it than a connection holds."""
    for server in servers.values():
        server.sql("INSERT INTO t SELECT seq, REPEAT('x', 1 << 20) FROM seq_10_to_60", database=schema)
    more = {"tls": certificate.tls(), "flight": {"port": free_port()}}
    file = server_file(tmp_path, feed, **more)
    with process(file) as running:
        reader = read(more["flight"]["port"], certificate.authority, {"table": f"{schema}.t"})  # type: ignore[index]
        reader.read_chunk()
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE_SECONDS) == 0


def test_the_example(tmp_path: Path, feed: Path, schema: str, certificate: Certificate) -> None:
    more = {"tls": certificate.tls(), "flight": {"port": free_port()}}
    with serving(server_file(tmp_path, feed, **more)) as server:
        env = {**os.environ, "STREAM_TOKEN": TOKEN, "STREAM_CA": str(certificate.certificate)}
        command = [
            sys.executable,
            str(EXAMPLES / "arrow.py"),
            f"localhost:{server.flight_port}",
            FEED,
            f"{schema}.t",
        ]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            rows = 0
            for line in running.stdout:
                rows += "'_change_type': 'insert'" in line
                if "'vgtid'" in line and rows:
                    break
            running.kill()
        assert rows == 9
