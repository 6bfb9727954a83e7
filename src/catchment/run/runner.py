"""Running a feed: everything that the loop needs is opened here, in order, and closed again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from catchment.config import Feed, ShardConfig, selects
from catchment.flow.capture.connect import connect, identify, must_be
from catchment.flow.sink.apply import DeltaSink
from catchment.flow.sink.epochs import EpochsTable
from catchment.model.epoch import Commit, Manifest
from catchment.model.errors import SinkError
from catchment.model.source import Endpoint, Tls
from catchment.run.clock import Clock
from catchment.run.faults import Injector, no_fault
from catchment.run.lease import Lease, hold
from catchment.run.loop import Loop
from catchment.run.origin import originate
from catchment.run.planner import Limits, Planner
from catchment.run.report import Report
from catchment.run.resume import Continue, Fresh, decide
from catchment.run.store import Store
from catchment.spark import job


def endpoint_of(shard: ShardConfig) -> Endpoint:
    """A shard of the feed file as a value for tasks."""
    tls = None
    if shard.tls is not None:
        t = shard.tls
        tls = Tls(*(str(p) if p else None for p in (t.ca, t.cert, t.key)), verify=t.verify)
    return Endpoint(shard.name, shard.host, shard.port, shard.user, shard.password.get_secret_value(), tls)


def endpoints_of(feed: Feed) -> dict[str, Endpoint]:
    """All shards by name."""
    return {shard.name: endpoint_of(shard) for shard in feed.source.shards}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the last epoch committed, and whether it was told to stop before it was done."""

    manifest: Manifest
    stopped: bool


def run_feed(
    feed: Feed,
    *,
    until_caught_up: bool,
    observe: Callable[[Report], None],
    stop: threading.Event,
    fault: Injector = no_fault,
) -> Outcome:
    """Copy and follow until stopped, or until caught up with the log as it stood when the copy was complete.

    Raises CatchmentError with what ended the run. A later run goes on where this one stopped.
    """
    endpoints = endpoints_of(feed)
    store = Store.open(feed.state.get_secret_value(), feed.name)
    sink = DeltaSink(feed.sink.path, feed.name)
    epochs = EpochsTable(feed.sink.path, feed.name)
    newest = epochs.newest()
    with hold(store, fence_above=newest.fence if newest else 0) as lease:
        standing = _take_up(feed, endpoints, store, sink, epochs, lease)
        clock = _started_clock(feed, endpoints, standing)
        spark = job.session(feed.name, feed.spark.master, feed.spark.conf)
        try:
            loop = Loop(
                endpoints=endpoints,
                interval=feed.epoch.interval,
                standing=standing,
                store=store,
                lease=lease,
                clock=clock,
                planner=Planner(endpoints, _limits(feed)),
                spark=spark,
                sink=sink,
                epochs=epochs,
                observe=observe,
                fault=fault,
                stop=stop,
            )
            with _cancelled_on(stop, spark):
                last = loop.run(_caught_up() if until_caught_up else lambda manifest: False)
        finally:
            clock.stop()
    return Outcome(last, stop.is_set())


def _limits(feed: Feed) -> Limits:
    copying = feed.copying
    return Limits(copying.chunk_time, copying.chunk_rows_max, copying.groups_per_shard, copying.log_budget)


def _take_up(
    feed: Feed,
    endpoints: dict[str, Endpoint],
    store: Store,
    sink: DeltaSink,
    epochs: EpochsTable,
    lease: Lease,
) -> Manifest:
    """The manifest from which the loop goes on, applied and committed."""
    _, stored, committed = store.newest()
    lake = epochs.newest()
    epochs.take_over(lease.fence)
    decision = decide(feed.name, stored, committed, lake)
    if isinstance(decision, Fresh):
        standing = originate(feed.name, endpoints, lambda table: selects(feed.tables, table), 0)
        store.put_manifest(standing, lease.fence)
        _commit(standing, store, sink, epochs, lease)
        return standing
    _check_servers(endpoints, decision.manifest)
    if decision.undo is not None:
        sink.restore(decision.undo, lease.fence)
    elif decision.apply:
        _commit(decision.manifest, store, sink, epochs, lease)
    return decision.manifest


def _commit(manifest: Manifest, store: Store, sink: DeltaSink, epochs: EpochsTable, lease: Lease) -> None:
    versions = sink.apply_epoch(manifest, lease.fence)
    commit = Commit(manifest.epoch, manifest.digest(), manifest.time_us, versions)
    epochs.append(manifest, commit, lease.fence)
    store.put_commit(commit, lease.fence)


def _check_servers(endpoints: dict[str, Endpoint], manifest: Manifest) -> None:
    if set(endpoints) != set(manifest.cut):
        raise SinkError(
            f"the feed file names shards {sorted(endpoints)}, the lake holds {sorted(manifest.cut)}; shards cannot be added to or "
            "taken from a feed yet: start a new feed with another sink path"
        )
    for shard, endpoint in endpoints.items():
        connection = connect(endpoint)
        try:
            must_be(identify(connection, endpoint), manifest.cut[shard].server, endpoint)
        finally:
            connection.close()


def _started_clock(feed: Feed, endpoints: dict[str, Endpoint], standing: Manifest) -> Clock:
    servers = {shard: position.server for shard, position in standing.cut.items()}
    clock = Clock(endpoints, servers, feed.epoch.tick, standing.epoch)
    return clock.start({shard: position.at for shard, position in standing.cut.items()})


def _caught_up() -> Callable[[Manifest], bool]:
    """True of the first epoch cut after the copy was seen complete: all that was in the log then is in the lake."""
    complete_since: list[int] = []

    def done(manifest: Manifest) -> bool:
        if not all(p.done for p in manifest.progress):
            return False
        if not complete_since:
            complete_since.append(manifest.epoch)
            return False
        return manifest.epoch > complete_since[0]

    return done


@contextmanager
def _cancelled_on(stop: threading.Event, spark: "job.SparkSession") -> Iterator[None]:
    """Cancel the running Spark job when told to stop, so that the run ends within seconds."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            if stop.is_set():
                spark.sparkContext.cancelAllJobs()
                return

    thread = threading.Thread(target=watch, name="stop", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
