"""Entry of a Spark task: runs one piece of work and turns our errors into values."""

from dataclasses import replace
from typing import TypeVar

from catchment import world
from catchment.epoch.work import BirthsTask, ChunkTask, Failed, Receipt, SegmentTask, Task
from catchment.model.errors import CatchmentError
from catchment.readers.births import read_births
from catchment.readers.changes import read_segment
from catchment.readers.copy import copy_chunks

_T = TypeVar("_T", SegmentTask, ChunkTask)


def run_task(task: Task | BirthsTask) -> Receipt:
    """Read what the task says; an error of ours comes back as a value.

    Each run of a task writes under a name of its own: two attempts never meet in one file.
    """
    token = world.token()[:12]
    try:
        if isinstance(task, BirthsTask):
            return read_births(BirthsTask(tuple(_named(one, token) for one in task.tasks)))
        if isinstance(task, SegmentTask):
            return read_segment(_named(task, token))
        return copy_chunks(_named(task, token))
    except CatchmentError as error:
        error.shard = task.endpoint.shard
        return Failed(error.shard, error)


def _named(task: _T, token: str) -> _T:
    return replace(task, target=replace(task.target, attempt=f"{task.target.attempt}-{token}"))
