"""Which runs of all feeds of a state store claim sessions of which servers.

A claim counts as long as the lease of its run is renewed. No wall clock is compared: whoever looks on sees the count of
renewals stand still. It then waits for the length of a lease, and for all that a killed run had open to end meanwhile.
"""

from collections.abc import Callable, Collection, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, inspect, select, update

from catchment import world
from catchment.model.sessions import Claim
from catchment.state.database import lease_table, session_table, version_table
from catchment.state.lease import LEASE_SECONDS
from catchment.state.patience import Patience, patient
from catchment.state.store import Store

_claim, _lease = session_table.c, lease_table.c
_COLUMNS = (
    _claim.server,
    _claim.feed,
    _claim.fence,
    _claim.held,
    _claim.least,
    _claim.most,
    _claim.ceiling,
    _claim.since_us,
)
_CLAIMS = (
    select(*_COLUMNS, _lease.fence, _lease.owner, _lease.renewals)
    .outerjoin_from(session_table, lease_table, _lease.feed == _claim.feed)
    .where(_claim.server.in_(bindparam("servers", expanding=True)))
)
_OF_RUN = delete(session_table).where(
    _claim.feed == bindparam("of_feed"), _claim.fence == bindparam("of_fence")
)
_CLAIM = insert(session_table)
# One row for all feeds: two runs never part the same sessions at once.
_LOCK = update(version_table).values(version=version_table.c.version)

Decide = Callable[[Sequence[Claim]], Sequence[Claim]]
# Of runs: how often their leases were renewed, and since when that has been so (steady seconds).
_Renewals = dict[tuple[str, int], tuple[int | None, float]]


class Claims:
    """Those on some servers, for the run of a feed that holds its lease by a fence. Methods raise StateError."""

    def __init__(self, store: Store, fence: int, servers: Collection[str]) -> None:
        self._store, self._fence, self._servers = store, fence, sorted(servers)
        self._renewed: _Renewals = {}
        self.seen: Sequence[Claim] = ()  # those that counted when this run looked last

    @property
    def run(self) -> tuple[str, int]:
        """Whose claims `change` writes."""
        return self._store.feed, self._fence

    @property
    def patience(self) -> Patience | None:
        """How long the run waits while the store is away."""
        return self._store.patience

    @patient
    def now(self) -> list[Claim]:
        """The claims that count."""
        with self._store.database.transaction() as connection:
            return self._living(connection)[0]

    @patient
    def change(self, decide: Decide) -> Sequence[Claim]:
        """Put what is decided of the claims that count in the place of those of this run; it is returned.

        Nobody else changes any meanwhile. Those of runs that are gone are forgotten. Raises LeaseLost.
        """
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            connection.execute(_LOCK)
            living, gone = self._living(connection)
            mine = decide(living)
            for feed, fence in {self.run, *gone}:
                connection.execute(_OF_RUN, {"of_feed": feed, "of_fence": fence})
            for claim in mine:
                connection.execute(_CLAIM, {name: getattr(claim, name) for name in claim.__struct_fields__})
        self.seen = [*(claim for claim in living if claim.run != self.run), *mine]
        return mine

    def give_back(self) -> None:
        """The run holds no session any more."""
        with self._store.database.transaction() as connection:
            connection.execute(_LOCK)
            connection.execute(_OF_RUN, {"of_feed": self._store.feed, "of_fence": self._fence})

    def _living(self, connection: Connection) -> tuple[list[Claim], set[tuple[str, int]]]:
        """The claims that count, and the runs of which none does any more."""
        living, gone = [], set()
        renewed: _Renewals = {}
        for *columns, fence, owner, renewals in connection.execute(_CLAIMS, {"servers": self._servers}):
            claim = Claim(*columns)
            # The claim of an earlier run of its feed, or of a feed without a lease, is renewed by nobody.
            count = renewals if fence == claim.fence else None
            ended = count is not None and not owner
            if claim.run == self.run or not (ended or self._stands_still(renewed, claim.run, count)):
                living.append(claim)
            else:
                gone.add(claim.run)
        self.seen, self._renewed = living, renewed
        return living, gone

    def _stands_still(self, renewed: _Renewals, run: tuple[str, int], count: int | None) -> bool:
        """Whether a count of renewals has been the same for as long as a lease lasts. It is noted in `renewed`."""
        now = world.steady_seconds()
        known, since = self._renewed.get(run, (count, now))
        renewed[run] = count, since if known == count else now
        return now - renewed[run][1] > LEASE_SECONDS


def claims_beside(connection: Connection, feed: str) -> list[Claim]:
    """The claims that a transaction sees on the servers of a feed, its own among them; none in a store of an earlier
    program. Those of runs that were killed are among them until another run has seen it."""
    if not inspect(connection).has_table(session_table.name):
        return []
    servers = select(_claim.server).where(_claim.feed == feed)
    rows = connection.execute(select(*_COLUMNS).where(_claim.server.in_(servers)).order_by(_claim.server))
    return [Claim(*row) for row in rows]
