"""What a server itself says of the GTIDs of its log."""

import re

from catchment.demo.server import PrivateServer
from tests.world.servers.launch import PrivateMySQL

_MYSQL_GTID = re.compile(r"([0-9a-f-]{36}):(?:1-)?(\d+)")


def newest_gtid(server: PrivateServer) -> str:
    """The GTID of the last group of the log; on MariaDB of the one domain that it has."""
    if not isinstance(server, PrivateMySQL):
        return str(server.sql("SELECT @@gtid_binlog_pos")[0][0])
    return re.sub(r":1-", ":", str(server.sql("SELECT @@GLOBAL.gtid_executed")[0][0]))


def all_gtids(server: PrivateServer) -> str:
    """Where the log ends, as a client names it: MySQL has a set of all GTIDs, MariaDB the newest of each domain."""
    variable = "gtid_executed" if isinstance(server, PrivateMySQL) else "gtid_binlog_pos"
    return str(server.sql(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")


def gtids_up_to(server: PrivateServer, file: str, offset: int) -> str:
    """All GTIDs up to the end of a group, as the feed writes them.

    On MySQL, for a log of one server without gaps, from SHOW BINLOG EVENTS; on MariaDB BINLOG_GTID_POS.
    """
    if not isinstance(server, PrivateMySQL):
        return str(server.sql(f"SELECT BINLOG_GTID_POS('{file}', {offset})")[0][0])
    origin, last = "", 0
    for _, start, kind, _, _, info in server.sql(f"SHOW BINLOG EVENTS IN '{file}'"):
        if start < offset and kind in ("Previous_gtids", "Gtid"):
            for name, number in _MYSQL_GTID.findall(info):
                assert kind == "Previous_gtids" or int(number) == last + 1
                origin, last = name, int(number)
    return f"{origin}:1-{last}" if last > 1 else f"{origin}:1"
