"""What every reading session sets, and then reads back. Each setting changed values or cut off results somewhere."""

# What the server allows a statement.
STATEMENT_SECONDS = 300

_PINNED = {
    "autocommit": "1",
    "time_zone": "+00:00",
    "sql_mode": "",
    "sql_select_limit": str(2**64 - 1),
    "character_set_client": "utf8mb4",
    "character_set_results": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "lock_wait_timeout": "5",
    # else a global max_join_size below a table's size refuses to read it (error 1104)
    "sql_big_selects": "1",
    "group_concat_max_len": str(2**30),
}
_PINNED_MARIADB = {"max_statement_time": f"{STATEMENT_SECONDS}.0"}
# The hard limit is in milliseconds and for SELECT alone.
_PINNED_MYSQL = {"max_execution_time": str(STATEMENT_SECONDS * 1000)}
# By the version that brought them (MySQL manual: Option and Variable Changes for MySQL 8.0). Without these, estimates
# of rows may be a day old. A secondary engine (HeatWave) lags behind InnoDB. A primary key that the server made can be
# hidden from the catalog.
_PINNED_MYSQL_SINCE = {
    (8, 0, 3): {"information_schema_stats_expiry": "0"},
    (8, 0, 13): {"use_secondary_engine": "OFF"},
    (8, 0, 30): {"show_gipk_in_create_table_and_information_schema": "1"},
}


def session_settings(mysql_version: tuple[int, ...] | None, isolation: str) -> dict[str, str]:
    """The settings by name; `mysql_version` is None for MariaDB."""
    variable = "tx_isolation" if mysql_version is None else "transaction_isolation"
    return {**_settings(mysql_version), variable: isolation}


def set_statement(settings: dict[str, str]) -> str:
    """The SET statement that makes them."""
    assignments = (f"SESSION {name} = {_literal(value)}" for name, value in settings.items())
    return f"SET {', '.join(assignments)}"


def _settings(version: tuple[int, ...] | None) -> dict[str, str]:
    if version is None:
        return _PINNED | _PINNED_MARIADB
    settings = _PINNED | _PINNED_MYSQL
    for since, later in _PINNED_MYSQL_SINCE.items():
        if version >= since:
            settings |= later
    return settings


def _literal(value: str) -> str:
    return value if value.replace(".", "", 1).isdigit() else f"'{value}'"
