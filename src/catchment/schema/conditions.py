"""What of its session and its server decides what a statement of the log does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conditions:
    """`time`: when the statement began, in seconds since 1970, 0 where that is not known. `strict`: its sql_mode is
    known to be. `usual`: names of types and empty texts are known to mean what they mean by default. `mysql`: the
    server is no MariaDB."""

    time: int = 0
    strict: bool = False
    usual: bool = False
    mysql: bool = False


UNKNOWN = Conditions()
