"""Checks of the places that a feed writes to, the lake and the state store, and of the Spark that it sends tasks to.
Nothing is sent here, and nothing stays of what is written."""

import errno
import os
import shutil
import socket
import tempfile
from contextlib import closing
from pathlib import Path

from catchment.config import Feed
from catchment.doctor.finding import Finding, Severity
from catchment.engine.java import java_fault
from catchment.model.errors import CatchmentError, StateError
from catchment.model.location import ObjectPath
from catchment.sink.storage.choice import storage_of
from catchment.state.database import Database
from catchment.state.lease import holder
from catchment.state.store import Store

FREE_BYTES_MIN = 1 << 30
_TRIAL_BYTES = 4096
_FULL = os.strerror(errno.ENOSPC)
# Spark manual: Security, Network Encryption. Either encrypts tasks on their way.
_ENCRYPTS = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
_SQLITE_MODE_AT, _SQLITE_WAL = 19, b"\2"  # "read version" (SQLite manual: Database File Format, 1.3)


def check_sink(feed: Feed) -> list[Finding]:
    """Whether files can be made in the lake's directory, or in the nearest one above it that is there."""
    path = feed.sink.path
    if not isinstance(path, Path):
        return [_check_store(path)]
    fault = _cannot_write(path)
    if fault:
        return [
            Finding(
                Severity.ERROR,
                "",
                f"the lake {path} cannot be written: {fault}",
                remedy="correct `sink.path`" + (", or free some space" if _FULL in fault else ""),
            )
        ]
    free = shutil.disk_usage(_existing(path)).free
    if free < FREE_BYTES_MIN:
        found = f"the lake {path} has {free >> 20} MiB of free space left"
        return [
            Finding(Severity.WARNING, "", found, "the feed stops when the disk is full", "free some space")
        ]
    return [Finding(Severity.OK, "", f"the lake {path} can be written, {free >> 30} GiB are free")]


def _check_store(lake: ObjectPath) -> Finding:
    """Whether objects can be put there, and a second one under the same name cannot."""
    try:
        storage_of(lake).must_serve(lake / "_catchment")
    except (CatchmentError, OSError) as fault:
        remedy = "correct `sink.path`, or the credentials in the environment (docs/object-stores.md)"
        return Finding(Severity.ERROR, "", f"the lake {lake} cannot be written: {fault}", remedy=remedy)
    return Finding(Severity.OK, "", f"the lake {lake} can be written, and has put-if-absent")


def check_ports(feed: Feed) -> list[Finding]:
    """Whether the ports of the metrics and of the page can be listened on. A feed that runs has them already."""
    metrics, status = feed.metrics, feed.status
    wanted = (("metrics", metrics.address, metrics.port), ("status", status.address, status.port))
    found = [_check_port(key, address, port) for key, address, port in wanted if port is not None]
    return [] if not found or _runs(feed) else found


def _check_port(key: str, address: str, port: int) -> Finding:
    try:
        family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            trial.bind(place)
    except OSError as fault:
        found = f"{key}.port: cannot listen on {address}:{port} ({fault.strerror})"
        remedy = f"end what listens there, or correct `{key}.port` and `{key}.address`"
        return Finding(Severity.ERROR, "", found, "the run does not start", remedy)
    return Finding(Severity.OK, "", f"{key}.port can listen on {address}:{port}")


def _runs(feed: Feed) -> bool:
    try:
        with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
            runner = holder(store)
    except CatchmentError:
        return False
    return runner is not None and not runner.is_dead()


def check_spark(feed: Feed) -> list[Finding]:
    """Whether Spark finds its Java, and tasks, which hold the shards' passwords, reach a cluster's executors
    encrypted."""
    fault, _, remedy = java_fault().partition("; ")
    found = [Finding(Severity.ERROR, "", fault, "Spark cannot start", remedy)] if fault else []
    return [*found, *_check_encryption(feed)]


def _check_encryption(feed: Feed) -> list[Finding]:
    if feed.spark.master.startswith("local"):
        return []
    if any(feed.spark.conf.get(name, "").lower() == "true" for name in _ENCRYPTS):
        return [Finding(Severity.OK, "", f"tasks reach {feed.spark.master} encrypted")]
    return [
        Finding(
            Severity.WARNING,
            "",
            f"`spark.conf` does not encrypt what is sent to {feed.spark.master}",
            "tasks hold the passwords of the shards, and anyone who hears the cluster's network can read them",
            "set `spark.authenticate` and `spark.network.crypto.enabled` to true there, unless the cluster does",
        )
    ]


def check_state(feed: Feed) -> list[Finding]:
    """Whether the state store can be used or made, and whether somebody runs the feed."""
    try:
        with closing(Database(feed.state.get_secret_value())) as database:
            if database.file is not None:
                found = _check_file(database.file)
                if found:
                    return found
            if not database.is_made():
                return [_check_unmade(database)]
            database.open(create=False)
            runner = holder(Store(database, feed.name))
    except CatchmentError as fault:
        return [Finding(Severity.ERROR, "", str(fault))]
    used = f"the state store {database} can be used"
    run = f"; the feed is run by {runner}" if runner is not None and not runner.is_dead() else ""
    return [Finding(Severity.OK, "", used + run)]


def _check_file(file: Path) -> list[Finding]:
    """What stands against an SQLite file, before it is opened."""
    fault = _cannot_write(file.parent) or _cannot_change(file)
    if fault:
        found = f"the state store {file} cannot be written: {fault}"
        return [Finding(Severity.ERROR, "", found, remedy="correct `state`")]
    if file.is_file():
        with file.open("rb") as opened:
            opened.seek(_SQLITE_MODE_AT)
            # Whoever looks into such a database makes files beside it; a state store never is one.
            if opened.read(1) == _SQLITE_WAL:
                return [_foreign(str(file))]
    return []


def _check_unmade(database: Database) -> Finding:
    """What can be said of a store that is not there yet."""
    if database.file is not None and database.tables():
        return _foreign(str(database))
    try:
        database.must_be_makeable()
    except StateError as refused:
        return Finding(Severity.ERROR, "", str(refused), remedy="let its user CREATE tables there")
    return Finding(Severity.OK, "", f"the state store {database} will be made at the first run")


def _foreign(name: str) -> Finding:
    return Finding(
        Severity.WARNING,
        "",
        f"{name} is a database of another program",
        "the first run adds the tables of the state store to it",
        "correct `state`, if another file was meant",
    )


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.parents) if p.exists())


def _cannot_write(directory: Path) -> str:
    """Why no file can be made there; empty when one can. The one that is made has no name, where the file system
    can make such."""
    try:
        at = _existing(directory)
    except OSError as fault:
        return fault.strerror or str(fault)
    if not at.is_dir():
        return f"{at} is no directory"
    if not os.access(at, os.W_OK | os.X_OK):
        return f"{at} is mounted read-only, or this user may not write there"
    try:  # rights do not tell of a full disk, a quota, or a file system that takes no files
        with tempfile.TemporaryFile(dir=at) as file:
            file.write(bytes(_TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as fault:
        return f"{at}: {fault.strerror}"
    return ""


def _cannot_change(file: Path) -> str:
    """Why a file, if it is there, cannot be read and written; empty when it can."""
    try:
        there = file.exists()
    except OSError as fault:
        return fault.strerror or str(fault)
    return "" if not there or os.access(file, os.R_OK | os.W_OK) else "this user may not read and write it"
