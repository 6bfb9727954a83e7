"""The statements that every epoch and every sign of life run, built once.

To build one takes SQLAlchemy longer than SQLite takes to run it. `of` is the feed, `what` a kind of record, `held` a
fence.
"""

from sqlalchemy import BindParameter, bindparam, delete, insert, literal, select, update

from catchment.state.database import journal_table, lease_table, record_table

_record, _lease, _entry = record_table.c, lease_table.c, journal_table.c
_of: BindParameter[str] = bindparam("of")
_what: BindParameter[str] = bindparam("what")
_at: BindParameter[int] = bindparam("at")
_one_record = (_record.feed == _of, _record.kind == _what, _record.epoch == _at)
_one_entry = (_entry.feed == _of, _entry.kind == _what)
_held = update(lease_table).where(_lease.feed == _of, _lease.fence == bindparam("held"))

# Touches the row, which locks it; no row when another runner has the lease.
GUARD = _held.values(fence=bindparam("held"))
RENEW = _held.values(renewals=_lease.renewals + 1)
RELEASE = _held.values(owner="")
# Of a lease that `mine` has, under the fence `held` or already under the next one.
RAISE = (
    update(lease_table)
    .where(_lease.feed == _of, _lease.fence.in_((bindparam("held"), bindparam("above"))))
    .where(_lease.owner == bindparam("mine"))
    .values(fence=bindparam("above"), renewals=_lease.renewals + 1)
)
LEASE = select(_lease.fence, _lease.owner, _lease.renewals).where(_lease.feed == _of)

RECORD = select(_record.record).where(*_one_record)
HAS_RECORD = select(literal(1)).where(*_one_record)
DELETE_RECORD = delete(record_table).where(*_one_record)
INSERT_RECORD = insert(record_table)
_newest_first = (_record.feed == _of, _record.kind == _what)
NEWEST_RECORD = select(_record.record).where(*_newest_first).order_by(_record.epoch.desc()).limit(1)
# Of several, how many to pass over; the newest with 0.
EPOCH_BEFORE = (
    select(_record.epoch)
    .where(*_newest_first)
    .order_by(_record.epoch.desc())
    .offset(bindparam("passed"))
    .limit(1)
)
DELETE_LATER = delete(record_table).where(*_newest_first, _record.epoch > _at)
DELETE_EARLIER = delete(record_table).where(_record.feed == _of, _record.epoch < _at)

ENTRY = select(_entry.record).where(*_one_entry)
DELETE_ENTRY = delete(journal_table).where(*_one_entry)
INSERT_ENTRY = insert(journal_table)
