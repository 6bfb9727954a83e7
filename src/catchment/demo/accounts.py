"""The accounts of a private server: root for its owner, and a user with what a feed needs and no more."""

from pymysql.converters import escape_string

FEED_USER = "catchment"
FEED_PRIVILEGES = "SELECT, REPLICATION SLAVE, BINLOG MONITOR"  # DESIGN section 8


def account_statements(root_password: str, feed_password: str) -> list[str]:
    """Statements that make the accounts anew, unlogged: for an init file, run before anyone connects."""
    statements = [
        "SET SESSION sql_log_bin = 0",
        # the installer's other roots have no password; an anonymous user would hide `catchment`@`%`
        "DELETE FROM mysql.global_priv WHERE User = 'root' AND Host NOT IN ('localhost', '127.0.0.1')",
        "DELETE FROM mysql.global_priv WHERE User = ''",
        "FLUSH PRIVILEGES",
    ]
    for account, password, grant in (
        ("root@localhost", root_password, "GRANT ALL PRIVILEGES ON *.* TO {} WITH GRANT OPTION"),
        ("root@'127.0.0.1'", root_password, "GRANT ALL PRIVILEGES ON *.* TO {} WITH GRANT OPTION"),
        (f"{FEED_USER}@'%'", feed_password, f"GRANT {FEED_PRIVILEGES} ON *.* TO {{}}"),
    ):
        statements.append(f"CREATE OR REPLACE USER {account} IDENTIFIED BY '{escape_string(password)}'")
        statements.append(grant.format(account))
    return statements
