"""What is tried once trouble is over: the shards answer, and yet clients are slow, shards at rest, or one away."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.world.sim.serve.ledger import Wrong

if TYPE_CHECKING:
    from tests.world.sim.serve.simulation import ServeSimulation

Exercise = Callable[["ServeSimulation"], None]
EXERCISES: dict[str, Exercise] = {}

# From a commit to each healthy client, whatever the others do.
_TOLD_SECONDS = 3.0
# A vgtid comes at least so often where a log goes on.
_PLACE_SECONDS = 10.0
# Nobody waits longer for a shard that does not answer.
_SILENT_SECONDS = 10.0


def exercise(one: Exercise) -> Exercise:
    """Add one under the name of its function."""
    EXERCISES[one.__name__] = one
    return one


@exercise
def steady(sim: "ServeSimulation") -> None:
    """Healthy clients receive what is written at once, and slow ones hold up nobody."""
    for _ in range(3):
        sim.write()
        lag = max(server.lag for server in sim.servers.values())
        sim.until_told("the healthy receive what was written", _TOLD_SECONDS + lag)


@exercise
def quiet(sim: "ServeSimulation") -> None:
    """Clients of tables that nobody changes are given places, since the logs go on, and heartbeats."""
    ends = sim.world.now + _PLACE_SECONDS + 3.0
    sim.writers.rests = True
    begun = {client: client.told_at for client in sim.healthy()}
    while sim.world.now < ends:
        sim.write(only="t")
        sim.tend(1.0)
        for client in sim.healthy():
            beats = client.habits.heartbeat
            if beats and sim.world.now - client.heard_at > 2 * beats + 1.0:
                raise Wrong(f"{client} hears nothing since {sim.world.now - client.heard_at:.1f} s")
    for client, told_at in begun.items():
        if client.told_at == told_at:
            raise Wrong(f"{client} was given no vgtid for {sim.world.now - told_at:.0f} s")
    sim.writers.rests = False


@exercise
def absence(sim: "ServeSimulation") -> None:
    """A shard is away: clients receive the others meanwhile, and all of it once it is back."""
    port, away = next(iter(sim.network.by_port.items()))
    sim.network.cut_until[port] = sim.world.now + 3 * _SILENT_SECONDS
    sim.write()
    others = [name for name, server in sim.servers.items() if server is not away]
    lag = max(server.lag for server in sim.servers.values())
    seconds = _SILENT_SECONDS + lag + 6.0
    sim.until_told("all receive the others while a shard is away", seconds, others)
    sim.network.cut_until[port] = 0.0
    sim.until_told("all receive the shard that was away", 30.0)


@exercise
def backlog(sim: "ServeSimulation") -> None:
    """What was written while nobody read comes side by side, by the times of the logs."""
    sim.skew.judges = True
    for client in sim.clients:
        client.away = client.habits.aligned
    for _ in range(8):
        sim.write()
        sim.tend(1.0)
    for client in sim.clients:
        client.away = False
    sim.until_told("all receive what was written while they were away", 60.0)


@exercise
def away_in_a_backlog(sim: "ServeSimulation") -> None:
    """A shard goes away while a backlog comes side by side: the others wait for it, but not for long."""
    aligned = [client for client in sim.clients if client.habits.aligned]
    for client in aligned:
        client.away = True
    sim.tend(1.0)
    for _ in range(8):
        sim.write()
        sim.tend(1.0)
    begun = {client: client.told_at for client in aligned}
    for client in aligned:
        client.away = False
    # One that has not come back yet could not begin without the shard.
    sim.until(
        "they receive something again", lambda: all(one.told_at != at for one, at in begun.items()), 30.0
    )
    port, away = next(iter(sim.network.by_port.items()))
    sim.network.cut_until[port] = sim.world.now + 4 * _SILENT_SECONDS
    others = [name for name, server in sim.servers.items() if server is not away]
    lag = max(server.lag for server in sim.servers.values())
    sim.until_told("all receive the others", _SILENT_SECONDS + lag + 20.0, others)
    sim.network.cut_until[port] = 0.0
    sim.until_told("all receive the shard that was away", 60.0)
