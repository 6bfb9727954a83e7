"""Checks of the places that a feed writes to: the lake and the state store."""

import shutil
import tempfile
from pathlib import Path

from sqlalchemy.engine import make_url

from catchment.config import Feed
from catchment.model.errors import StateError
from catchment.run.doctor.finding import Finding, Severity
from catchment.run.lease import holder
from catchment.run.store import Store

FREE_BYTES_MIN = 1 << 30


def check_sink(feed: Feed) -> list[Finding]:
    """Whether files can be made in the lake's directory, or in the nearest directory above it."""
    path = feed.sink.path
    fault = _cannot_write(path)
    if fault:
        return [
            Finding(
                Severity.ERROR,
                "",
                f"the lake {path} cannot be written: {fault}",
                remedy="correct `sink.path`",
            )
        ]
    free = shutil.disk_usage(_existing(path)).free
    if free < FREE_BYTES_MIN:
        found = f"the lake {path} has {free >> 20} MiB of free space left"
        return [
            Finding(Severity.WARNING, "", found, "the feed stops when the disk is full", "free some space")
        ]
    return [Finding(Severity.OK, "", f"the lake {path} can be written, {free >> 30} GiB are free")]


def check_state(feed: Feed) -> list[Finding]:
    """Whether the state store can be used, and whether somebody runs the feed."""
    url = make_url(feed.state.get_secret_value())
    file = Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
    if file is not None:
        fault = _cannot_write(file.parent)
        if fault:
            found = f"the state store {file} cannot be written: {fault}"
            return [Finding(Severity.ERROR, "", found, remedy="correct `state`")]
        if not file.exists():
            return [Finding(Severity.OK, "", f"the state store {file} will be made at the first run")]
    try:
        store = Store.open(feed.state.get_secret_value(), feed.name)
        runner = holder(store)
    except StateError as fault:
        return [Finding(Severity.ERROR, "", str(fault))]
    name = str(store.database)
    store.close()
    if runner is not None and not runner.is_dead():
        return [Finding(Severity.OK, "", f"the state store {name} can be used; the feed is run by {runner}")]
    return [Finding(Severity.OK, "", f"the state store {name} can be used")]


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.parents) if p.exists())


def _cannot_write(directory: Path) -> str:
    """Why no file can be made there; empty when one can."""
    try:
        with tempfile.TemporaryFile(dir=_existing(directory)) as file:
            file.write(b"catchment")
    except OSError as fault:
        return fault.strerror or str(fault)
    return ""
