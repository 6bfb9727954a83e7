"""The work of a task, whose faults of ours come back as values: Spark would repeat what cannot go well."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from catchment.model.source import Endpoint

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Broken:
    """A task ended in an error that is none of ours: its last line, and its traceback. Neither has the password."""

    said: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Guarded(Generic[_Task, _Receipt]):
    """`work`, with what it raises as a value.

    Memory that is short fails the task, as a worker that dies does: both may go well later.
    """

    work: Callable[[_Task], _Receipt]

    def __call__(self, task: _Task) -> _Receipt | Broken:
        """Do the work of a task."""
        try:
            return self.work(task)
        except MemoryError:
            raise
        except Exception as error:
            said = traceback.format_exception_only(error)[-1].strip()
            return Broken(_without_password(said, task), _without_password(traceback.format_exc(), task))


def _without_password(text: str, task: object) -> str:
    endpoint = getattr(task, "endpoint", None)
    secret = endpoint.password if isinstance(endpoint, Endpoint) else ""
    return text.replace(secret, _HIDDEN) if secret else text
