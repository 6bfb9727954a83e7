"""What a server keeps that changes rows of tables which a statement does not name: views, triggers, routines."""

import msgspec

from catchment.model.table import TableId


class Stored(msgspec.Struct, frozen=True):
    """One view, trigger, routine, package body or foreign key of a shard's catalog.

    Whoever names `name` in `schema` runs it: of a trigger that is its table, of a foreign key the table whose rows it
    follows. `text` is its body, None where the catalog does not show it. `sql_mode` is the mode in which the server
    reads the text, None when it is not known. `what` says for messages what it is.
    """

    what: str
    schema: str
    name: str
    text: str | None
    sql_mode: int | None = None


class AllStored(msgspec.Struct, frozen=True):
    """All that is stored on a shard; `lacking`: privileges without which some of it does not show.

    `hidden`: tables and views of which it does not show what they lead to. None where even those are not known.
    """

    stored: tuple[Stored, ...]
    lacking: tuple[str, ...] = ()
    hidden: tuple[TableId, ...] | None = None
