"""How to reach a shard."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from catchment.model.errors import NoPassword

# A command that says a password is run for tasks so often at most: every epoch has some.
_TASK_SECONDS = 60.0


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
    that is left is waited for until the server has ended it. `ask_password`: gives the password as it is now, or was so
    many seconds ago at most, where it is kept outside of the feed file and may be another one later; it raises
    ValueError where nobody says it. A task takes the answer along."""

    shard: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls | None = None
    counted: bool = False
    ask_password: Callable[[float], str] | None = field(default=None, repr=False, compare=False)

    @property
    def now(self) -> "Endpoint":
        """The same with the password as it is now. Raises NoPassword where nobody says it."""
        return self._with_password(0.0)

    def __reduce__(self) -> tuple[type["Endpoint"], tuple[object, ...]]:
        try:
            password = self._with_password(_TASK_SECONDS).password
        except NoPassword:  # the task is refused, and holds up its shard alone
            password = self.password
        return Endpoint, (self.shard, self.host, self.port, self.user, password, self.tls, self.counted)

    def _with_password(self, within: float) -> "Endpoint":
        if self.ask_password is None:
            return self
        try:
            return replace(self, password=self.ask_password(within))
        except ValueError as fault:
            unknown = NoPassword(
                f"shard {self.shard} at {self.host}:{self.port}: no password of {self.user!r}: {fault}"
            )
            unknown.shard = self.shard
            raise unknown from None

    @property
    def place(self) -> str:
        """Host and port, by which feeds know that they read one server."""
        return f"{self.host.lower()}:{self.port}"
