"""The server's file: what it means, and every fault it can have."""

from pathlib import Path

import pytest

from catchment.config import ServeConfig, load_server
from catchment.model.errors import ConfigError
from catchment.model.slow import Slow

MINIMAL = """
tls: {certificate: server.pem, key: server.key}
feeds:
  - {file: shop.yaml, tokens: [a-token-of-16-signs]}
"""


def server_of(tmp_path: Path, text: str) -> ServeConfig:
    file = tmp_path / "serve.yaml"
    file.write_text(text)
    return load_server(file)


def faults_of(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        server_of(tmp_path, text)
    prefix = f"{tmp_path}/serve.yaml:"
    return [line.removeprefix(prefix) for line in str(caught.value).splitlines()]


def test_defaults_and_paths_relative_to_the_file(tmp_path: Path) -> None:
    server = server_of(tmp_path, MINIMAL)
    assert server.tls is not None
    assert server.tls.key == tmp_path / "server.key"
    assert [served.file for served in server.feeds] == [tmp_path / "shop.yaml"]
    assert (server.address, server.port, server.clients_max) == ("127.0.0.1", 7447, 100)
    assert (server.buffer, server.slow) == (64 << 20, Slow.REREAD)


def test_tokens_come_from_elsewhere_and_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_TEST_TOKEN", "one-token-of-the-environment")
    (tmp_path / "token").write_text("two-token-of-a-file\n")
    text = MINIMAL.replace("a-token-of-16-signs", "{env: CATCHMENT_TEST_TOKEN}, {file: token}")
    server = server_of(tmp_path, text)
    assert [token.get_secret_value() for token in server.feeds[0].tokens] == [
        "one-token-of-the-environment",
        "two-token-of-a-file",
    ]
    assert "-token-of" not in repr(server) + str(server)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1"])
def test_without_tls_on_a_loopback_address(tmp_path: Path, address: str) -> None:
    text = MINIMAL.replace("{certificate: server.pem, key: server.key}", f"off\naddress: '{address}'")
    assert server_of(tmp_path, text).tls is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tls: {certificate: server.pem, key: server.key}", "", "3: tls: is missing"),
        (", key: server.key", "", "2: tls.key: is missing"),
        ("{certificate: server.pem, key: server.key}", "yes", "2: tls: expected a mapping with the keys"),
        (
            "{certificate: server.pem, key: server.key}",
            "off\naddress: 0.0.0.0",
            "tls: off is for a loopback address such as 127.0.0.1, and address is 0.0.0.0",
        ),
        (
            "{certificate: server.pem, key: server.key}",
            "off\naddress: db.example",
            "tls: off is for a loopback",
        ),
        ("feeds:", "port: 0\nfeeds:", "3: port: at least 1"),
        ("feeds:", "buffer: 64\nfeeds:", "3: buffer: expected a size"),
        ("feeds:", "buffer: 1KB\nfeeds:", "3: buffer: at least 1MB"),
        ("feeds:", "slow: perhaps\nfeeds:", "3: slow: expected reread, gap or end"),
        ("feeds:", "client_max: 3\nfeeds:", "3: client_max: unknown key; did you mean clients_max?"),
        ("tokens: [a-token-of-16-signs]", "", "4: feeds[0].tokens: is missing"),
        ("[a-token-of-16-signs]", "[]", "4: feeds[0].tokens: give at least one token"),
        ("a-token-of-16-signs", "short-secret", "4: feeds[0].tokens: expected 16 characters at least"),
        ("a-token-of-16-signs", "a secret of 16 signs", "4: feeds[0].tokens: expected letters, digits and"),
        ("a-token-of-16-signs", "a-secret-of-16-signé", "4: feeds[0].tokens: expected letters, digits and"),
        ("a-token-of-16-signs", "'$SECRET_TOKEN'", "4: feeds[0].tokens: looks like a variable"),
        ("a-token-of-16-signs", "{env: CATCHMENT_UNSET}", "4: feeds[0].tokens: environment variable"),
        ("file: shop.yaml", "file: shop.yaml, token: hidden-secret-words", "4: feeds[0].token: unknown key"),
    ],
)
def test_faults(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MINIMAL
    faults = "\n".join(faults_of(tmp_path, MINIMAL.replace(old, new, 1)))
    assert said in faults
    assert "secret" not in faults.lower().replace("secret_token", "")


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a server needs the keys tls and feeds"):
        server_of(tmp_path, "")
    with pytest.raises(ConfigError, match="cannot read the server's file"):
        load_server(tmp_path / "missing.yaml")
