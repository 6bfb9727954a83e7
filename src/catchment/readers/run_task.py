"""Entry of a Spark task: runs one piece of work and turns our errors into values."""

from dataclasses import replace

from catchment import world
from catchment.epoch.work import Failed, Receipt, SegmentTask, Task
from catchment.model.errors import CatchmentError
from catchment.readers.changes import read_segment
from catchment.readers.copy import copy_chunks


def run_task(task: Task) -> Receipt:
    """Read what the task says; an error of ours comes back as a value.

    Each run of a task writes under a name of its own: two attempts never meet in one file.
    """
    target = replace(task.target, attempt=f"{task.target.attempt}-{world.token()[:12]}")
    try:
        if isinstance(task, SegmentTask):
            return read_segment(replace(task, target=target))
        return copy_chunks(replace(task, target=target))
    except CatchmentError as error:
        error.shard = task.endpoint.shard
        return Failed(error.shard, error)
