"""MySQL: which transactions are logged and may not be visible yet (DESIGN 3, sealing).

A transaction owns its GTID from before it is written to the log until its rows are visible. (Seen: a commit held by
semi-sync AFTER_SYNC owns it all the while, and one that is rolled back gives it up, too.) So a position P is sealed
when no GTID that was owned after P was read is owned any more. XA COMMIT may give its GTID up before its rows are
visible, but its XID stays in XA RECOVER until they are. So no XID that was listed then may be listed any more. That
also waits for those that nobody commits.
"""

import re

import msgspec

from catchment.model.errors import SourceError
from catchment.model.gtidset import GtidSet
from catchment.model.position import Xid
from catchment.source.offsets import open_xa
from catchment.source.session import Session


class Pending(msgspec.Struct, frozen=True):
    """What was being committed at one moment."""

    gtids: GtidSet
    xids: frozenset[Xid]

    def over(self, now: "Pending") -> bool:
        """True when nothing of it is left: positions read before it was asked are sealed."""
        return not self.gtids.meets(now.gtids) and not self.xids & now.xids


def ask_pending(session: Session) -> Pending | None:
    """What MySQL is committing now; None when not every group has a GTID: then nothing is known.

    gtid_mode becomes ON only when no group without GTID is under way (MySQL manual: gtid_mode).
    """
    row = session.row("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_owned")
    if row is None or row[0] != "ON":
        return None
    # By thread: `uuid:5#12:6#13`.
    owned = GtidSet.parse(re.sub(r"#\d+", "", str(row[1])))
    return Pending(owned, frozenset(open_xa(session)))


def must_know_pending(session: Session) -> Pending:
    """As `ask_pending`, to copy rows; raises SourceError where nothing is known."""
    pending = ask_pending(session)
    if pending is None:
        raise SourceError(
            f"shard {session.endpoint.shard}: gtid_mode is not ON: without GTIDs MySQL does not tell when a logged "
            "transaction is visible, so rows cannot be copied without a lock; turn GTIDs on (no restart is "
            "needed): SET GLOBAL enforce_gtid_consistency=ON, then gtid_mode=OFF_PERMISSIVE, ON_PERMISSIVE "
            "and ON; or name a replica that has GTIDs as host"
        )
    return pending
