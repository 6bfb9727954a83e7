"""What a user says to `format("catchment")`: options as one checked value."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catchment.config import Feed, load
from catchment.model.errors import ConfigError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.model.units import parse_size

EARLIEST, LATEST = "earliest", "latest"
# Log that a group of a batch read may read behind its floor.
LOG_BYTES_MAX = 1 << 30
# Log of a micro-batch: after a long pause the log comes in batches that a consumer can hold.
BYTES_PER_TRIGGER = 64 << 20


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """`feed`: path of the feed file, the same on driver and executors. `starting`: earliest, latest, or a
    cut as JSON. `gtids`: instead of it, behind which GTIDs to begin.

    The limits hold for one micro-batch (`bytes_per_trigger` of log, `chunks_per_trigger` per shard) or,
    `log_bytes`, for one group of chunks of a batch read.
    """

    feed: str
    table: TableId
    starting: str = EARLIEST
    gtids: str | None = None
    bytes_per_trigger: int = BYTES_PER_TRIGGER
    chunks_per_trigger: int | None = None
    log_bytes: int = LOG_BYTES_MAX

    def load(self) -> tuple[Feed, dict[str, Endpoint]]:
        """The feed and its shards, read anew: passwords stay in the process that uses them. The feed's state store
        is not asked for. Raises ConfigError.
        """
        feed = load(self.feed, secrets=("password",))
        if any(rule.of_table(self.table) for rule in feed.columns):
            raise ConfigError(
                f"{self.feed}: columns of {self.table} are excluded, masked or renamed, which this source does not do: "
                "it gives rows as they are; read the lake, or give it a feed file without columns"
            )
        return feed, {endpoint.shard: endpoint for endpoint in feed.endpoints()}


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """Raises ConfigError with every fault of the options."""
    given = {key.lower(): value for key, value in options.items()}
    faults = []
    if not given.get("feed"):
        faults.append("option feed is missing: the path of the feed file")
    table = None
    try:
        table = TableId.parse(given.get("table", ""))
    except ValueError:
        faults.append("option table is missing or not of the form schema.name")
    limits: dict[str, int | None] = {}
    for name, read in (("maxBytesPerTrigger", _bytes), ("maxChunksPerTrigger", int), ("maxLogBytes", _bytes)):
        try:
            limits[name] = _positive(read(given[name.lower()])) if name.lower() in given else None
        except ValueError:
            faults.append(f"option {name}: {given[name.lower()]!r} is not a number above 0 (bytes: 64MB)")
    if "startingoffset" in given and "startinggtids" in given:
        faults.append("options startingOffset and startingGtids name two places to begin: give one")
    if faults or table is None:
        raise ConfigError("; ".join(faults))
    return SourceOptions(
        feed=str(Path(given["feed"]).absolute()),
        table=table,
        starting=given.get("startingoffset", EARLIEST),
        gtids=given.get("startinggtids"),
        bytes_per_trigger=limits["maxBytesPerTrigger"] or BYTES_PER_TRIGGER,
        chunks_per_trigger=limits["maxChunksPerTrigger"],
        log_bytes=limits["maxLogBytes"] or LOG_BYTES_MAX,
    )


def _bytes(text: str) -> int:
    return int(text) if text.strip().isdigit() else parse_size(text)


def _positive(number: int) -> int:
    if number < 1:
        raise ValueError(number)
    return number
