"""`catchment serve`: what is refused before it listens."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from catchment.cli.main import execute
from tests.layers.config.test_file import MINIMAL
from tests.promises.serve.conftest import Certificate, certificate  # noqa: F401
from tests.promises.serve.server import server_file
from tests.world.log_lines import without_times


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    file.write_text(MINIMAL)
    return file


def refused(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert execute(["serve", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "hunter2" not in said.err
    return without_times(said.err)


def test_a_feed_that_hides_columns_is_refused(
    tmp_path: Path, feed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed.write_text(MINIMAL + "columns: [{match: shop.people.name, exclude: true}]\n")
    text = refused(server_file(tmp_path, feed), capsys)
    assert "leaves out, masks or renames columns, which streams do not" in text, text


def test_two_files_of_one_feed(tmp_path: Path, feed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(MINIMAL)
    assert "feeds: two files have the feed shop" in refused(server_file(tmp_path, feed, other), capsys)


def test_certificates(
    tmp_path: Path,
    feed: Path,
    certificate: Certificate,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    key, other = certificate.key.read_text(), tmp_path / "other.key"
    loaded = serialization.load_pem_private_key(key.encode(), None)
    encrypted = loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    ).decode()
    for given, said in (
        (None, f"catchment: tls.key: cannot read {other}: No such file or directory\n"),
        ("no PEM", f"catchment: tls: {certificate.certificate} and {other} are no certificate with its key"),
        (encrypted, f"catchment: tls.key: {other} is encrypted; give a key without a passphrase\n"),
    ):
        if given:
            other.write_text(given)
        tls = {"certificate": str(certificate.certificate), "key": str(other)}
        assert refused(server_file(tmp_path, feed, tls=tls), capsys).startswith(said)
    assert key not in capsys.readouterr().err


def test_without_its_packages_it_says_what_to_install(tmp_path: Path, feed: Path) -> None:
    script = (
        "import sys; sys.modules['grpc'] = None; from catchment.cli.main import execute; "
        f"sys.exit(execute(['serve', {str(server_file(tmp_path, feed))!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert without_times(done.stderr) == (
        "catchment: catchment serve needs pip install 'catchment[serve]' (grpc is missing)\n"
    )


def test_a_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(yaml.safe_dump({"feeds": []}))
    assert refused(file, capsys).splitlines() == [
        f"catchment: {file}:1: feeds: give at least one feed",
        f"catchment: {file}:1: tls: is missing",
    ]
