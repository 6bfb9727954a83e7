"""What a server's file says: where `catchment serve` listens, which feeds it serves, and to whom.

docs/serve-reference.md is written from these descriptions.
"""

import ipaddress
from typing import Any, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from catchment.config.section import Section
from catchment.config.units import Bytes
from catchment.config.values import FilePath, Secret
from catchment.config.watching import StatusConfig
from catchment.model.slow import Slow

TOKEN_CHARACTERS_MIN = 16
BUFFER_BYTES_MIN = 1 << 20
_LOCAL_NAMES = ("localhost",)


class ServerTls(Section):
    """What clients see of the server."""

    certificate: FilePath = Field(
        description="The server's certificate with those that lead to its authority, a PEM file."
    )
    key: FilePath = Field(description="The key of `certificate`, a PEM file.")


class FlightConfig(Section):
    """Where tables are served as Arrow."""

    port: int = Field(ge=1, le=65535, description="TCP port on `address`, with the certificate of `tls`.")


class ServedFeed(Section):
    """A feed whose rows are streamed."""

    file: FilePath = Field(
        description="Its feed file: `name` is what clients ask for, `source` has the rows, and clients may have the "
        "tables that `tables` takes."
    )
    tokens: tuple[Secret, ...] = Field(
        description="Tokens that open this feed, of 16 characters at least: `{env: VARIABLE}`, `{file: path}` or a "
        "text in quotes; never shown. To change a token, give the old one and the new one for a while.",
    )

    subscribers: bool = Field(
        default=False,
        description="Keep, in the feed's `state`, what [subscribers](serve.md#subscribers) have acknowledged. Servers "
        "with the same `state` stand for one another.",
    )

    @field_validator("tokens")
    @classmethod
    def _long_enough(cls, tokens: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if not tokens:
            raise ValueError("give at least one token")
        for token in tokens:
            text = token.get_secret_value()
            if len(text) < TOKEN_CHARACTERS_MIN:
                raise ValueError(
                    f"expected {TOKEN_CHARACTERS_MIN} characters at least: a short token can be guessed"
                )
            if not (text.isascii() and text.isprintable()) or " " in text:
                raise ValueError("expected letters, digits and signs of ASCII, which a header can carry")
        return tokens


class ServeConfig(Section):
    """A whole file of a server."""

    address: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address of this host that `port` is opened on; `0.0.0.0` means all.",
    )
    port: int = Field(default=7447, ge=1, le=65535, description="TCP port.")
    tls: ServerTls | None = Field(
        description="The certificate. `off`: connections are plain, which a loopback `address` alone allows.",
    )
    feeds: tuple[ServedFeed, ...] = Field(description="The feeds.")
    clients_max: int = Field(
        default=100, ge=1, le=10_000, description="Streams of a feed at a time; each takes a thread."
    )
    buffer: Bytes = Field(
        default=64 << 20,
        ge=BUFFER_BYTES_MIN,
        description="What a reader that clients share keeps for those that are slower than it.",
    )
    unacknowledged: Bytes = Field(
        default=64 << 20,
        ge=BUFFER_BYTES_MIN,
        description="Messages that a subscriber is given before it acknowledges some; then its stream waits.",
    )
    flight: FlightConfig | None = Field(
        default=None, description="[Arrow Flight](serve.md#tables-as-arrow), beside gRPC."
    )
    status: StatusConfig = Field(
        default=StatusConfig(), description="Where the [page of the server](serve.md#the-page) is."
    )
    slow: Slow = Field(
        default=Slow.REREAD,
        description="What becomes of a client that is slower than that. `reread`: a reader of its own serves it, and "
        "nothing is lost. `gap`: what it missed is left out, and it is told so. `end`: its stream ends with an error. "
        "A request may say otherwise.",
    )

    @field_validator("tls", mode="before")
    @classmethod
    def _off(cls, tls: Any) -> Any:
        """YAML takes `off` for a truth value."""
        return None if tls is False else tls

    @field_validator("feeds")
    @classmethod
    def _some(cls, feeds: tuple[ServedFeed, ...]) -> tuple[ServedFeed, ...]:
        if not feeds:
            raise ValueError("give at least one feed")
        return feeds

    @model_validator(mode="after")
    def _own_ports(self) -> Self:
        if self.flight is not None and self.flight.port == self.port:
            raise ValueError("port and flight.port are the same: each has a port of its own")
        return self

    @model_validator(mode="after")
    def _hidden_from_others(self) -> Self:
        if self.tls is None and not _is_loopback(self.address):
            raise ValueError(
                f"tls: off is for a loopback address such as 127.0.0.1, and address is {self.address}: tokens and rows "
                "would be readable on the way; give tls.certificate and tls.key"
            )
        return self


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address in _LOCAL_NAMES
