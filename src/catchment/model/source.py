"""How to reach a shard."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace


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
    that is left is waited for until the server has ended it. `ask_password`: gives the password as it is now, where it
    stands outside of the feed file and may be another one later; a task takes the answer along."""

    shard: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls | None = None
    counted: bool = False
    ask_password: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def now(self) -> "Endpoint":
        """The same with the password as it is now."""
        return self if self.ask_password is None else replace(self, password=self.ask_password())

    def __reduce__(self) -> tuple[type["Endpoint"], tuple[object, ...]]:
        given = (self.shard, self.host, self.port, self.user, self.now.password, self.tls, self.counted)
        return Endpoint, given

    @property
    def place(self) -> str:
        """Host and port, by which feeds know that they read one server."""
        return f"{self.host.lower()}:{self.port}"
