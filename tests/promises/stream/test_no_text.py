"""A value that is no text of its column's character set."""

from collections.abc import Callable

import catchment
from catchment.serve.stream.events import Event, Restart, Row
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of, until_copied, up_to


def rows(events: list[Event]) -> list[tuple[int, str]]:
    return [
        (event.after["id"], event.after["t"]) for event in events if isinstance(event, Row) and event.after
    ]


def test_it_restarts_its_table_and_no_other(servers: Servers, fresh_schema: Callable[..., str]) -> None:
    """Servers take half a surrogate pair in ucs2."""
    server = servers["-40"]
    schema = fresh_schema(server)
    for name in ("half", "plain"):
        made = f"CREATE TABLE {name} (id INT PRIMARY KEY, t VARCHAR(9) CHARACTER SET ucs2)"
        server.sql(made, f"INSERT INTO {name} VALUES (1, 'a')", database=schema)
    with catchment.stream(source_of({"-": server}), rules=[f"{schema}.*"]) as stream:
        assert rows(until_copied(stream)) == [(1, "a"), (1, "a")]
        server.sql("INSERT INTO half VALUES (2, _ucs2 x'D800')", database=schema)
        server.sql("INSERT INTO plain VALUES (3, 'c')", database=schema)
        found = up_to(stream, lambda event: isinstance(event, Restart))
        server.sql("INSERT INTO plain VALUES (4, 'd')", database=schema)
        found += up_to(stream, lambda event: (4, "d") in rows([event]))
        assert sorted(rows(found)) == [(3, "c"), (4, "d")]
        server.sql("UPDATE half SET t = 'b' WHERE id = 2", database=schema)
        # The next transaction proves that it is visible.
        server.sql("INSERT INTO plain VALUES (5, 'e')", database=schema)
        found += up_to(stream, lambda event: (2, "b") in rows([event]))
        # The row as it was before it was corrected is in the log, too.
        restarts = [event for event in found if isinstance(event, Restart)]
        assert {(restart.table.name, restart.gone) for restart in restarts} == {("half", False)}
        assert all("a value is not valid text" in restart.reason for restart in restarts)
        told = sorted(row for row in rows(found) if row != (5, "e"))
        assert told == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
