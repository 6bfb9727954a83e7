"""How to reach a shard."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS files (PEM) of a connection; `verify` checks the server's name and certificate."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server of a shard. The password never shows in `repr`. `counted`: its sessions have a ceiling, so one
    that is left is waited for until the server has ended it."""

    shard: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls | None = None
    counted: bool = False

    @property
    def place(self) -> str:
        """Host and port, by which feeds know that they read one server."""
        return f"{self.host.lower()}:{self.port}"
