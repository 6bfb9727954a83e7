"""What waits in a lake for its cut, and whose rows it is."""

from pathlib import Path

from catchment.epoch.staging import StageTask
from catchment.sink.delta.layout import ours_dir
from tests.promises.exact.steps import Steps
from tests.world.engines import Here
from tests.world.marks import by


def staged(lake: object) -> list[Path]:
    """The files that wait for their cut."""
    return sorted((ours_dir(Path(str(lake))) / "staged").rglob("*.arrow"))


def staged_tables(here: Here) -> set[str]:
    """The tables of which the tasks that ran last have staged rows."""
    return {
        chunk.table.name for task in here.done[-1] if isinstance(task, StageTask) for chunk in task.chunks
    }


def set_copy(steps: Steps, strategy: str, marks: str) -> None:
    """Copy by a strategy, in groups of one small chunk."""
    copying = {"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1}
    steps.set(copy={**copying, **by(strategy, marks)})
