"""The work of a task, whose faults of ours come back as values: an engine would repeat what cannot go well."""

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from catchment.model.errors import ProgramFault
from catchment.model.source import Endpoint

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")

_HIDDEN = "***"

_log = logging.getLogger(__name__)


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


def receipts(found: Sequence[_Receipt | Broken]) -> list[_Receipt]:
    """What the tasks brought; raises ProgramFault for one that broke, whose traceback is logged."""
    broken = next((result for result in found if isinstance(result, Broken)), None)
    if broken is not None:
        _log.error("a task failed by a fault of this program:\n%s", broken.traceback)
        raise ProgramFault(
            f"a task failed by a fault of this program ({broken.said}); please report the traceback in the log"
        )
    return cast(list[_Receipt], list(found))


def _without_password(text: str, task: object) -> str:
    endpoint = getattr(task, "endpoint", None)
    secret = endpoint.password if isinstance(endpoint, Endpoint) else ""
    return text.replace(secret, _HIDDEN) if secret else text
