"""Settings of the copy that may change while a feed runs, and what they are changed to. Pure."""

import difflib
from typing import Final

from pydantic import BaseModel, ValidationError

from catchment.config.copying import CopyConfig, ThrottleConfig
from catchment.config.faults import fields_of, models_in, said
from catchment.config.feed import Feed
from catchment.config.units import unit_of
from catchment.model.errors import ConfigError

_OF_COPY = ("chunk_time", "chunk_rows_max", "group_time", "groups_per_shard", "log_budget")
_OF_THROTTLE = (
    "threads_running",
    "history_list_length",
    "replica_lag",
    "rows_per_second",
    "bytes_per_second",
)
LIVE: Final = (*(f"copy.{one}" for one in _OF_COPY), *(f"copy.throttle.{one}" for one in _OF_THROTTLE))
CAN_CHANGE: Final = f"what can change is {', '.join(LIVE)}"
# Takes a limit away.
_OFF = "off"


def with_setting(feed: Feed, name: str, text: str) -> Feed:
    """The feed with another value of a setting, written as in the feed file; `off` takes a limit away. Raises
    ConfigError for a setting that may not change, or is not known, and for a value that it cannot have."""
    if name not in LIVE:
        raise ConfigError(_why_not(name))
    field = name.rpartition(".")[2]
    if field in _OF_COPY:
        value = getattr(_checked(name, {field: text}), field)
        copying = feed.copying.model_copy(update={field: value})
    else:
        given = None if text == _OFF else text
        value = getattr(_checked(name, {"throttle": {field: given}}).throttle, field)
        throttle = feed.copying.throttle.model_copy(update={field: value})
        copying = feed.copying.model_copy(update={"throttle": throttle})
    changed = feed.model_copy(update={"copying": copying})
    try:
        changed.must_know_replicas()
    except ValueError as fault:
        raise ConfigError(str(fault)) from None
    return changed


def must_fit_sessions(of_file: Feed, changed: Feed, name: str) -> None:
    """Raise ConfigError where a change of a setting asks for sessions that the run does not have all the time."""
    if (
        of_file.source.sessions_max is not None
        and changed.session_needs().beside > of_file.session_needs().beside
    ):
        raise ConfigError(
            f"{name} needs a session more on each shard, and source.sessions_max lets the run have so many as it began "
            "with; write it into the feed file and start the run again"
        )


def setting_text(feed: Feed, name: str) -> str:
    """The value of a setting of `LIVE`, as the feed file would have it."""
    field = name.rpartition(".")[2]
    of_copy = field in _OF_COPY
    value = getattr(feed.copying if of_copy else feed.copying.throttle, field)
    if value is None:
        return _OFF
    unit = unit_of((CopyConfig if of_copy else ThrottleConfig).model_fields[field])
    return str(value) if unit is None else unit.written(value)


def _checked(name: str, values: dict[str, object]) -> CopyConfig:
    try:
        return CopyConfig.model_validate(values)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False, include_input=False)[0]
        raise ConfigError(f"{name}: {said({**error, 'loc': ('copy', *error['loc'])})}") from None


def _why_not(name: str) -> str:
    if _is_key(name):
        return f"{name} cannot change while a feed runs; change the feed file and start the run again ({CAN_CHANGE})"
    near = difflib.get_close_matches(name, LIVE, n=1, cutoff=0.5)
    return f"{name} is no setting; {f'did you mean {near[0]}?' if near else CAN_CHANGE}"


def _is_key(name: str) -> bool:
    """Whether the feed file knows a key of that path."""
    sections: list[type[BaseModel]] = [Feed]
    for step in name.split("."):
        field = fields_of(sections[0]).get(step) if sections else None
        if field is None:
            return False
        sections = models_in(field.annotation)
    return True
