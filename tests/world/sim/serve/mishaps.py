"""What happens to servers of streams and to their clients, and what their shards' own clients do."""

import random
from dataclasses import dataclass, field

from tests.world.sim.clients import Clients
from tests.world.sim.scheduler import Process, SimWorld
from tests.world.sim.serve.theme import Theme
from tests.world.sim.server import Server
from tests.world.sim.session import Network


class Writers(Clients):
    """Once a server is calm they only write and end what they have begun; nothing at all while it `rests`."""

    rests = False

    def write(self, server: Server, hold: float) -> bool:
        """As Clients do it; nothing at all while they rest."""
        return self.rests or super().write(server, hold)

    def _act(self, server: Server) -> None:
        if not self.calm:
            super()._act(server)


@dataclass
class Mishaps:
    """Kills, freezes, and logs that go away, at random steps and moments.

    `dangerous`: whether any may happen. `killed`: how many processes were. `broken`: log was taken away that clients
    may not have been told.
    """

    world: SimWorld
    network: Network
    theme: Theme
    dangerous: bool = True
    killed: int = 0
    broken: bool = False
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = rng = self.world.rng
        self._kills, self._freezes = rng.choice(self.theme.kills), rng.choice(self.theme.freezes)
        self._deaths = rng.choice(self.theme.deaths)

    def at_step(self, process: Process, what: str) -> None:
        """A process may die or stand still here."""
        name = process.name
        if not self.dangerous:
            return
        if name.startswith("serve"):
            chance = self.rng.random()
            if chance < self._kills:
                self._kill(process)
            elif chance < self._kills + self._freezes:
                process.frozen_until = self.world.now + self.rng.choice((0.3, 2.0, 6.0))
        elif name.startswith("client") and self.rng.random() < self._deaths:
            self._kill(process)

    def break_off(self, until: float) -> None:
        """Take something away at some moments."""
        rng = self.rng
        for _ in range(rng.randrange(1, len(self.theme.breaks) + 1)):
            self.world.sleep(rng.random() * max(0.0, until - self.world.now) / 2)
            port, server = rng.choice(list(self.network.by_port.items()))
            what = rng.choice(self.theme.breaks)
            if not self.dangerous:
                return
            if what == "away":
                self.network.cut_until[port] = self.world.now + rng.choice((0.3, 1.0, 3.0))
                continue
            if what == "renamed":
                server.renames = True
                for _ in range(rng.choice((1, 1, 2))):
                    server.restart(crash=rng.random() < 0.5)
                continue
            self.broken = True
            if what == "purge":
                server.purge(server.files[-1].number)
            else:
                server.reset(ends_sessions=rng.random() < 0.5)

    def _kill(self, process: Process) -> None:
        self.killed += 1
        self.world.kill(process)
