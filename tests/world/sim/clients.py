"""What the clients and the operators of the servers do, as a seed says."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.world.sim.history import Change
from tests.world.sim.scheduler import SimWorld
from tests.world.sim.server import Server
from tests.world.sim.session import Network
from tests.world.sim.theme import Theme

_GROUPS_MAX = 250
_COLUMNS_MAX = 6
_LAST_KEY = 0.25
# How often a TRUNCATE says that of all partitions, which copies the table anew.
_OF_PARTS = 0.4
# For how many seconds a server does not answer.
_HANGS = (0.5, 3.0, 12.0, 40.0)


@dataclass
class Clients:
    """`calm`: what was begun is ended, and a transaction comes now and then. `last`: nothing comes any more.

    `read`: number of the oldest log file of a server that a feed may still need. `truncates`: weight of TRUNCATE.
    """

    world: SimWorld
    network: Network
    read: Callable[[Server], int]
    theme: Theme
    truncates: float = 0.0
    calm: bool = False
    last: bool = False
    idle: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        rng, theme = self.world.rng, self.theme
        self.holds = rng.choice(theme.holds)
        self.mix: dict[Callable[[Clients, Server], None], float] = {
            Clients._write_some: 80,
            Clients._rotate: rng.choice(theme.rotations),
            Clients._prepare_or_end: rng.choice(theme.xa),
            Clients._restart: rng.choice((0, 1.5, 5)),
            Clients._alter: rng.choice((0, 1.5)),
            Clients._cut_off: rng.choice((0, 3, 6)),
            Clients._hang: rng.choice((0, 2, 5)),
            Clients._purge_read: rng.choice(theme.purges),
            Clients.truncate: self.truncates,
        }

    def of(self, server: Server) -> Callable[[], None]:
        """The life of a server's clients."""

        def live() -> None:
            rng = self.world.rng
            pace = rng.choice(self.theme.paces)
            while not self.calm:
                # A feed that stands still reads all of this again and again.
                crowded = len(server.history.groups) > _GROUPS_MAX
                self.world.sleep(rng.expovariate(1 / (3.0 if crowded else pace)))
                server.settle()
                server.settle_late()
                self._act(server)
            for xid in server.open_xa:
                server.end_xa(xid, commit=rng.random() < 0.5, hold=0.0)
            server.settle_all()
            # What a server at rest has logged is proven visible by groups that come later, in epochs of their own.
            while not self.last:
                self.world.sleep(5.0)
                while not self.write(server, hold=0.0):
                    pass
                server.settle_all()
            self.idle.add(server.name)

        return live

    def quiet(self) -> bool:
        """Whether all clients have ended."""
        return len(self.idle) == len(self.network.by_port)

    def write_once_more(self) -> None:
        """A transaction on each server: a stale table enters once the log goes on, and the last statement may have made
        it one."""
        for server in self.network.by_port.values():
            while not self.write(server, hold=0.0):
                pass
            server.settle_all()

    def _act(self, server: Server) -> None:
        (what,) = self.world.rng.choices(list(self.mix), list(self.mix.values()))
        what(self, server)

    def _write_some(self, server: Server) -> None:
        self.write(server, hold=self.world.rng.choice(self.holds))

    def _rotate(self, server: Server) -> None:
        server.rotate()

    def _alter(self, server: Server) -> None:
        if not server.locked() and len(server.tables["t"].columns) < _COLUMNS_MAX:
            server.settle_all()
            for _ in range(self.world.rng.choice((1, 1, 2))):
                server.add_column("t", f"c{len(server.tables['t'].columns)}")
                self.write(server, hold=0.0)
            if self.world.rng.random() < 0.5:
                server.add_column("t", f"c{len(server.tables['t'].columns)}")

    def truncate(self, server: Server) -> None:
        """Truncate a table on which no transaction is open."""
        table = self.world.rng.choice(sorted(server.tables))
        if not any(locked == table for locked, _ in server.locked()):
            server.settle_all()
            server.truncate(table, parts=self.world.rng.random() < _OF_PARTS)
            if self.world.rng.random() < 0.7:
                self.write(server, hold=0.0)

    def _cut_off(self, server: Server) -> None:
        self.network.cut_until[self._port(server)] = self.world.now + self.world.rng.choice((0.1, 1.0, 8.0))

    def _hang(self, server: Server) -> None:
        self.network.hangs_until[self._port(server)] = self.world.now + self.world.rng.choice(_HANGS)

    def _purge_read(self, server: Server) -> None:
        server.purge(self.read(server))

    def break_off(self, server: Server) -> None:
        """What may take log away that no feed has read."""
        rng = self.world.rng
        what = rng.choice(self.theme.breaks)
        if what == "purge":
            server.purge(server.files[-1].number)
        elif what == "flush":
            server.flush()
        else:
            server.reset(ends_sessions=rng.random() < 0.5)
            if what == "twice":
                self.world.sleep(rng.random() * 0.5)
                server.reset(ends_sessions=rng.random() < 0.5)

    def _port(self, server: Server) -> int:
        return next(port for port, one in self.network.by_port.items() if one is server)

    def _restart(self, server: Server) -> None:
        rng = self.world.rng
        server.up = False
        self.world.sleep(rng.choice((0.2, 2.0)))
        lost = self._changes(server)
        server.restart(crash=rng.random() < 0.5, cut_off=rng.random() < 0.5, lost=lost)
        server.up = True

    def _changes(self, server: Server, most: int = 4) -> tuple[Change, ...]:
        rng = self.world.rng
        held = server.locked()
        changes: dict[tuple[str, int], Change] = {}
        for _ in range(rng.randrange(1, most + 1)):
            table = server.tables[rng.choice(sorted(server.tables))]
            # Where a table ends, a copy ends.
            key = max(table.logged) if table.logged and rng.random() < _LAST_KEY else rng.randrange(1, 80)
            if (table.name, key) in held or (table.name, key) in changes:
                continue
            row = (key, *(rng.randrange(1000) for _ in table.columns[1:]))
            gone = key in table.logged and rng.random() < 0.35
            changes[table.name, key] = (table.name, key, None if gone else row)
        return tuple(changes.values())

    def write(self, server: Server, hold: float) -> bool:
        """Commit a few changes; whether there were any."""
        changes = self._changes(server)
        if changes:
            server.commit(changes, hold)
        return bool(changes)

    def _prepare_or_end(self, server: Server) -> None:
        rng = self.world.rng
        if server.open_xa:
            server.end_xa(
                rng.choice(server.open_xa),
                commit=rng.random() < 0.7,
                hold=rng.choice(self.theme.late),
            )
        elif (changes := self._changes(server)) and len(server.prepared) < 2:
            server.prepare(f"x{rng.getrandbits(30)}".encode(), changes)
