"""Values of the feed file that depend on where the file lies, or that must stay secret."""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    SecretStr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from catchment.config.outside import FromCommand, FromFile, text_of
from catchment.model.errors import ConfigError
from catchment.model.location import Location, ObjectPath, is_address, location
from catchment.world.commands import said_by

# The key of the secret that is asked for at each login.
_OF_LOGINS = "password"
# The keys of feed files and servers' files that hold secrets.
SECRETS = (_OF_LOGINS, "state", "url", "mask_key", "http", "tokens")

# SQLAlchemy's name for a database alone chooses a driver that is not among our dependencies.
_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}

_STATE_EXPECTED = "expected a path, or a URL such as mysql://user:password@host/database"
# A URL with a slip in its beginning, such as mysql:/user:password@host/database. As a path it would be shown in full.
_PLAIN_PATH = re.compile(r"/(?!/)|\.{1,2}/|~")
_MEANT_AS_URL = re.compile(
    r"[a-z0-9+.-]+:/|(sqlite|mysql|mariadb|postgres|postgresql)(\+\w+)?:|.*:.*@", re.IGNORECASE | re.DOTALL
)

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# As compose files and shells have it: $NAME, ${NAME}, ${NAME:-default}.
_VARIABLE = re.compile(r"\$([A-Z_][A-Z0-9_]*|\{.*\})", re.DOTALL)


class Context(TypedDict):
    """What the validation of a feed file is told; there is none when a feed is built by a program."""

    directory: Path
    secrets: Collection[str]


class Unread(SecretStr):
    """Stands for a secret that was not asked for. `path`: of the file that holds it, if one does."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__("")
        self.path = path

    def get_secret_value(self) -> str:
        """Raises LookupError always: an empty text would be taken for the secret."""
        raise LookupError("the feed file was loaded without this secret")


def base_directory(info: ValidationInfo) -> Path:
    """Directory of the feed file; the current one when a feed is built by a program."""
    context: Context | None = info.context
    return context["directory"] if context else Path.cwd()


def _if_asked_for(value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
    """The secret, checked; unread, and neither looked for nor looked at, when nobody wants it."""
    context: Context | None = info.context
    path: Path | None = None
    match value:
        case {"file": str(name), **rest} if not rest:
            path = _absolute(name, info)
    if context is not None and info.field_name not in context["secrets"]:
        return Unread(path)
    match value:
        case {"command": list(given), **rest} if not rest and info.field_name == _OF_LOGINS:
            return FromCommand(_command(given))
    found = read(value)
    return found if path is None else FromFile(found.get_secret_value(), path)


def _absolute(text: str, info: ValidationInfo) -> Path:
    if not text or "\0" in text:
        raise ValueError("expected a path; it is empty or holds a zero byte")
    if (address := _ADDRESS.match(text)) is not None:
        raise ValueError(
            f"expected a path, not an address ({address[0]}); give the path of a local or mounted file or directory"
        )
    try:
        return base_directory(info) / Path(text).expanduser()
    except RuntimeError:
        raise ValueError("begins with ~ and the name of a user that this host does not have") from None


def _path(value: object, info: ValidationInfo) -> object:
    return _absolute(value, info) if isinstance(value, str) else value


def _lake(value: object, info: ValidationInfo) -> object:
    """A directory, or the address of a prefix in an object store."""
    if isinstance(value, Path | ObjectPath):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a path, as a text")
    if not is_address(value):
        return _absolute(value, info)
    try:
        return location(value)
    except ConfigError as fault:
        raise ValueError(str(fault)) from None


def _index(value: object, info: ValidationInfo) -> object:
    """A directory of this machine, or none. YAML takes `off` for a truth value."""
    if value is None or value is False or isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a path, or off")
    return _absolute(value, info)


def _secret(value: object, info: ValidationInfo) -> object:
    """The secret itself, read from where the file says it is. No message repeats the value."""
    found = _read_secret(value, info)
    text = found.get_secret_value() if isinstance(found, SecretStr) else found
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, or a byte of the environment
        raise ValueError("holds what is not UTF-8 text") from None
    if info.context and found is value and _VARIABLE.fullmatch(text):
        raise ValueError(
            "looks like a variable of the environment, and would be taken word for word; write {env: NAME}, or "
            "{file: path} if this is the text itself"
        )
    return found


def _read_secret(value: object, info: ValidationInfo) -> str | SecretStr:
    if isinstance(value, str | SecretStr):
        return value
    match value:
        case {"env": str(variable), **rest} if not rest:
            if variable not in os.environ:
                raise ValueError(f"environment variable {variable} is not set")
            return os.environ[variable]
        case {"file": str(name), **rest} if not rest:
            return text_of(_absolute(name, info))
        case {"command": list(given), **rest} if not rest:
            return said_by(_command(given))
    raise ValueError(
        "expected {env: VARIABLE}, {file: path}, {command: [program, argument]} or a text in quotes"
    )


def _command(given: list[object]) -> tuple[str, ...]:
    if not given or not given[0] or not all(isinstance(part, str) for part in given):
        raise ValueError("expected a program and its arguments as texts: {command: [program, argument]}")
    return tuple(map(str, given))


def _database(value: object, info: ValidationInfo) -> object:
    """A state store as a SQLAlchemy URL; a path names an SQLite file."""
    from sqlalchemy import URL  # what reads a lake alone needs no state store
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    secret = _secret(value, info)
    text = secret.get_secret_value() if isinstance(secret, SecretStr) else str(secret)
    if "://" not in text:
        if _MEANT_AS_URL.match(text) and not _PLAIN_PATH.match(text):
            raise ValueError(f"{_STATE_EXPECTED}; a path that looks like a URL begins with ./")
        return URL.create("sqlite", database=str(_absolute(text, info))).render_as_string()
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(_STATE_EXPECTED) from None
    database = url.database or ""
    if url.get_backend_name() == "sqlite":
        if not database:
            raise ValueError(f"{_STATE_EXPECTED}; an SQLite database in memory keeps no state")
    elif "@" in database:
        raise ValueError(f"{_STATE_EXPECTED}; in a password @ is written as %40, / as %2F")
    driver = _DRIVERS.get(url.drivername, url.drivername)
    return url.set(drivername=driver).render_as_string(hide_password=False)


def _named(pattern: str, expected: str) -> AfterValidator:
    whole = re.compile(pattern)

    def must_match(name: str) -> str:
        if whole.fullmatch(name) is None:
            raise ValueError(f"expected {expected}")
        return name

    return AfterValidator(must_match)


def _setting(value: Any) -> Any:
    """Spark takes texts: YAML's `true` and `4` become theirs."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Name = Annotated[str, _named(r"[A-Za-z0-9_.-]{1,64}", "up to 64 letters, digits, _, . and -")]
FeedName = Annotated[
    str,
    _named(
        r"[a-z0-9][a-z0-9_-]{0,63}",
        "up to 64 lower-case letters, digits, _ and -, of which the first is a letter or a digit",
    ),
]
ColumnName = Annotated[str, _named(r"[^\x00-\x1f`]{1,64}", "a column's name, of up to 64 characters")]
FilePath = Annotated[Path, BeforeValidator(_path)]
IndexPath = Annotated[Path | Literal[False] | None, PlainValidator(_index)]
LakePath = Annotated[Location, PlainValidator(_lake)]
Secret = Annotated[SecretStr, BeforeValidator(_secret), WrapValidator(_if_asked_for)]
Database = Annotated[SecretStr, BeforeValidator(_database), WrapValidator(_if_asked_for)]
SettingText = Annotated[str, BeforeValidator(_setting)]
