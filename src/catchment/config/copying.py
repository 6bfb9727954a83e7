"""What a feed file says of the copy of rows that exist already: how fast, in what order, and when it waits."""

from pydantic import Field, SecretStr, field_validator

from catchment.config.section import Section
from catchment.config.table_patterns import check_rules, takes
from catchment.config.units import Bytes, Seconds
from catchment.config.values import FilePath, Secret, Unread
from catchment.model.strategy import Strategy
from catchment.model.table import TableId

CHUNK_SECONDS_MIN = 0.01
CHUNK_SECONDS_MAX = 60.0  # the feed's sessions end a SELECT after 300 seconds
LOG_BUDGET_MIN = 1 << 20
BYTES_PER_SECOND_MIN = 1 << 10


class QueryConfig(Section):
    """A question to the shard whose answer says whether it bears the copy."""

    select: str = Field(
        description="A SELECT that gives one number, within four seconds. NULL, no row and no number count as too "
        "much: `COALESCE` says what they mean to you."
    )
    at_most: float = Field(allow_inf_nan=False, description="The greatest number with which rows are copied.")

    @field_validator("select")
    @classmethod
    def _reads(cls, select: str) -> str:
        if not select.lstrip().lower().startswith(("select", "with", "(")):
            raise ValueError("expected a SELECT")
        return select


class ThrottleConfig(Section):
    """When rows that exist already wait. The log is read all the same."""

    threads_running: int | None = Field(
        default=None,
        ge=1,
        description="The shard's `Threads_running` at most. The session that asks is one of them.",
    )
    history_list_length: int | None = Field(
        default=None,
        ge=0,
        description="The shard's `Innodb_history_list_length` at most, the transactions that InnoDB has not purged. "
        "MySQL tells it to users with PROCESS.",
    )
    replica_lag: Seconds | None = Field(
        default=None,
        ge=0,
        description="How far a replica that a shard names in `replicas` may lag behind it, by its own "
        "`Seconds_Behind_Master`, in whole seconds.",
    )
    query: QueryConfig | None = Field(default=None, description="A question of your own.")
    flag_file: FilePath | None = Field(
        default=None, description="No row is copied while this file exists, where the run is."
    )
    http: Secret | None = Field(
        default=None,
        description="`http://` or `https://` address: rows are copied while a GET of it answers 200. It may hold a "
        "token: `{env: VARIABLE}`, `{file: path}` or a text in quotes; never shown.",
    )
    rows_per_second: int | None = Field(
        default=None, ge=1, description="Rows that are copied of one shard, on average over seconds."
    )
    bytes_per_second: Bytes | None = Field(
        default=None,
        ge=BYTES_PER_SECOND_MIN,
        description="Bytes of rows that are copied of one shard, on average over seconds.",
    )

    @property
    def asks_shard(self) -> bool:
        """Whether a check has a session on the shard itself."""
        return (self.threads_running, self.history_list_length, self.query) != (None, None, None)

    @field_validator("http")
    @classmethod
    def _can_be_asked(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None or isinstance(url, Unread):
            return url
        if url.get_secret_value().startswith(("http://", "https://")):
            return url
        raise ValueError("expected an address that begins with http:// or https://")


class CopyConfig(Section):
    """How rows that exist already are copied."""

    chunk_time: Seconds = Field(
        default=0.5,
        ge=CHUNK_SECONDS_MIN,
        le=CHUNK_SECONDS_MAX,
        description="Aim for one SELECT; an ALTER TABLE that waits behind it holds up writers for as long.",
    )
    chunk_rows_max: int = Field(
        default=1_000_000,
        ge=1,
        description="Rows that a chunk aims for at most. It can have more: of a range that the server estimates, twice "
        "as many are let through, and rows alike in the columns that a key is cut by are one chunk.",
    )
    group_time: Seconds = Field(
        default=1.5,
        ge=0,
        le=CHUNK_SECONDS_MAX,
        description="What the SELECTs of a group of chunks take together. An epoch copies a group or several, so that "
        "small chunks do not make for many epochs. Of less than three chunks it has three. Beside a table that is "
        "followed it has less, as much as an epoch of `epoch.interval` has time for.",
    )
    groups_per_shard: int = Field(
        default=2, ge=1, le=64, description="Groups of chunks that one shard serves at the same time."
    )
    log_budget: Bytes = Field(
        default=64 << 20,
        ge=LOG_BUDGET_MIN,
        description="Log that a group of chunks may read from its floor to the cut; beyond it, the log comes first. "
        "Of what the log says of its own keys a group holds four times as much; beyond it, smaller chunks.",
    )
    strategy: Strategy = Field(
        default=Strategy.REWIND,
        description="How rows come to [the cut at which they count](strategies.md). `rewind` SELECTs them behind it, "
        "and writes nothing on the shards. `watermark` does so in front of it, between two marks in the log: read the "
        "patent notice there first. `snapshot` does so in a consistent snapshot in front of it.",
    )
    marks: str = Field(
        default="catchment.marks",
        description="The table for the marks of `watermark`, on each shard: `schema.name`. The schema must be there, "
        "and the table is made.",
    )
    first: tuple[str, ...] = Field(
        default=(),
        description="[Patterns](patterns.md) of the tables that are copied first. Those of an earlier pattern come "
        "before those of a later one, and the rest after them.",
    )
    throttle: ThrottleConfig = Field(
        default=ThrottleConfig(), description="[When rows wait](dump.md#throttle) for the source's sake."
    )

    @field_validator("marks")
    @classmethod
    def _is_a_table(cls, name: str) -> str:
        TableId.parse(name)
        return name

    @property
    def marks_table(self) -> TableId:
        """The table for marks."""
        return TableId.parse(self.marks)

    @field_validator("first")
    @classmethod
    def _takes_tables(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if pattern.startswith("!"):
                raise ValueError(f"{pattern} is an exclusion; name what comes first")
            check_rules((pattern,))
        return patterns

    def place_of(self, table: TableId) -> int:
        """The place of a table in the order of the copy: that of the first pattern which takes it."""
        places = (place for place, pattern in enumerate(self.first) if takes((pattern,), table))
        return next(places, len(self.first))
