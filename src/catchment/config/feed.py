"""What a feed file says, as frozen values. Every limit has its default and its meaning here;
docs/feed-reference.md is written from these descriptions."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from catchment.config.arrange import ArrangeConfig
from catchment.config.columns import ColumnConfig
from catchment.config.copying import CopyConfig
from catchment.config.ddl import DdlConfig
from catchment.config.modes import ModeConfig
from catchment.config.outside import FromCommand, FromFile
from catchment.config.section import Section
from catchment.config.shadows import SHADOWS, is_shadow
from catchment.config.sink import SinkConfig
from catchment.config.spark import EngineName, SparkConfig
from catchment.config.table_patterns import check_rules, takes
from catchment.config.units import Seconds
from catchment.config.values import Database, FeedName, FilePath, Name, Secret, Unread
from catchment.config.verifying import VerifyConfig
from catchment.config.watching import MetricsConfig, NotifyConfig, StatusConfig
from catchment.model.arrangement import AS_THEY_COME
from catchment.model.column_rule import ColumnRule, Masking, MaskKey
from catchment.model.sessions import CHECKS, CLOCK, GROUP, Needs
from catchment.model.source import Endpoint, Tls
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.model.treatment import Changes, Mode, SchemaChange, Treatment

TICK_SECONDS_MIN = 0.01
INTERVAL_SECONDS_MIN = 0.05
MASK_KEY_MIN = 16
DEFAULT_STATE = "<name>.state.db"


class TlsConfig(Section):
    """TLS of a shard's connections; `{}` means TLS with the system's authorities."""

    ca: FilePath | None = Field(default=None, description="Certificates of trusted authorities, a PEM file.")
    cert: FilePath | None = Field(default=None, description="The client's certificate, a PEM file.")
    key: FilePath | None = Field(default=None, description="The key of `cert`, a PEM file.")
    verify: bool = Field(default=True, description="Check the server's certificate and host name.")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key belong together: give both or neither")
        return self


class ReplicaConfig(Section):
    """A replica of a shard."""

    host: str = Field(min_length=1, description="Host name or address.")
    port: int = Field(default=3306, ge=1, le=65535, description="TCP port.")


class ShardConfig(Section):
    """One server that holds a part of the keyspace."""

    name: Name = Field(
        description='Name within the keyspace such as `"-80"`; in quotes, since YAML reads -80 as a number.',
    )
    host: str = Field(min_length=1, description="Host name or address.")
    port: int = Field(default=3306, ge=1, le=65535, description="TCP port.")
    user: str = Field(
        min_length=1,
        description="User with SELECT, REPLICATION SLAVE and BINLOG MONITOR "
        "(MySQL: REPLICATION CLIENT and XA_RECOVER_ADMIN).",
    )
    password: Secret = Field(
        default=SecretStr(""),
        description="Its password: `{env: VARIABLE}`, `{file: path}`, `{command: [program, argument]}` or a text in "
        "quotes; never shown. A file is read and a command is run [again at each login]"
        "(operations.md#rotating-passwords).",
    )
    tls: TlsConfig | None = Field(default=None, description="TLS settings; without them, a plain connection.")
    replicas: tuple[ReplicaConfig, ...] | None = Field(
        default=None,
        description="Its replicas, of which `copy.throttle.replica_lag` asks how far they lag; `[]` says that there "
        "are none. User, password and TLS are the shard's; the user needs REPLICA MONITOR there (MariaDB).",
    )

    def endpoint(self, *, counted: bool = False) -> Endpoint:
        """How to reach it, with the password in clear."""
        tls = None
        if self.tls is not None:
            tls = Tls(_text(self.tls.ca), _text(self.tls.cert), _text(self.tls.key), self.tls.verify)
        # A command is asked by whoever logs in.
        password = "" if isinstance(self.password, FromCommand) else self.password.get_secret_value()
        ask = self.password.now if isinstance(self.password, FromFile | FromCommand) else None
        return Endpoint(self.name, self.host, self.port, self.user, password, tls, counted, ask)

    def replica_endpoints(self) -> tuple[Endpoint, ...]:
        """How to reach its replicas, with the password in clear."""
        shard = self.endpoint()
        return tuple(replace(shard, host=one.host, port=one.port) for one in self.replicas or ())


class SourceConfig(Section):
    """Where the rows come from."""

    keyspace: Name = Field(description="Name of the whole; shards are `keyspace/shard`.")
    shards: tuple[ShardConfig, ...] = Field(description="The servers.")
    sessions_max: int | None = Field(
        default=None,
        ge=1,
        description="[Sessions of each server](operations.md#sessions-of-a-server) that all runs of this state store "
        "may have at a time, dumps of the log among them. Say it in every feed file of the server: the lowest counts.",
    )

    @field_validator("shards")
    @classmethod
    def _distinct(cls, shards: tuple[ShardConfig, ...]) -> tuple[ShardConfig, ...]:
        if not shards:
            raise ValueError("give at least one shard")
        names = _twice(shard.name for shard in shards)
        places = _twice(f"{shard.host}:{shard.port}" for shard in shards)
        if names or places:
            raise ValueError("given to more than one shard: " + ", ".join([*names, *places]))
        return shards


class EpochConfig(Section):
    """How often the lake moves on."""

    interval: Seconds = Field(
        default=1.0,
        ge=INTERVAL_SECONDS_MIN,
        description="Time between two epochs, when the sink keeps up.",
    )
    tick: Seconds = Field(
        default=0.1,
        ge=TICK_SECONDS_MIN,
        description="Least time between two readings of all shards' positions.",
    )
    away_max: Seconds = Field(
        default=600.0,
        ge=0,
        description="A shard that cannot be read holds up itself alone for so long: epochs close without it, and name "
        "it. Then they wait for it. 0: every epoch has all shards.",
    )
    wait_max: Seconds | None = Field(
        default=None,
        ge=0,
        description="For so long a run waits for a shard, for the state store or for the object store of the lake, "
        "with growing pauses; then it ends. Without it the run waits for ever, and with `--until-caught-up` for half a "
        "minute.",
    )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.tick > self.interval:
            raise ValueError("tick must not be longer than interval: an epoch ends at a tick")
        return self


class Unusable(Enum):
    """What to do about chosen tables that cannot be carried, when a feed begins."""

    FAIL = "fail"
    SKIP = "skip"


class NewTables(Enum):
    """What to do about chosen tables that come after a feed began."""

    CARRY = "carry"
    SKIP = "skip"


class Feed(Section):
    """A whole feed file."""

    name: FeedName = Field(
        description="Name of the feed: lower-case letters, digits, `_` and `-`. The tables that it makes in the lake "
        "belong to this name: do not change it.",
    )
    source: SourceConfig = Field(description="The shards.")
    tables: Annotated[tuple[str, ...], AfterValidator(check_rules)] = Field(
        description="Which tables: [patterns](patterns.md) such as `shop.orders`, `shop.*`, and exclusions such as "
        '`"!shop.tmp_*"`, which always win.'
    )
    columns: tuple[ColumnConfig, ...] = Field(
        default=(), description="[Columns](columns.md) that are left out, masked or renamed."
    )
    modes: tuple[ModeConfig, ...] = Field(
        default=(), description="Tables of which the lake keeps [more than the rows of now](modes.md)."
    )
    arrange: tuple[ArrangeConfig, ...] = Field(
        default=(),
        description="[How rows lie in files](layout.md): in what order, kept apart by what, how large.",
    )
    mask_key: Secret | None = Field(
        default=None,
        description="Key of `mask: hmac`, 16 characters at least: `{env: VARIABLE}`, `{file: path}` or a text in "
        "quotes; never shown. Keep it: the feed goes on with this key alone.",
    )
    epoch: EpochConfig = Field(default=EpochConfig(), description="How often the lake moves on.")
    copying: CopyConfig = Field(
        default=CopyConfig(), alias="copy", description="How existing rows are copied."
    )
    sink: SinkConfig = Field(description="The lake.")
    schema_change: SchemaChange = Field(
        default=SchemaChange.EVOLVE,
        description="What a feed does about [DDL on its tables](ddl.md). `evolve` follows it where the log tells "
        "what it does, and copies the table anew where it does not. `freeze` leaves the table as of the epoch before, "
        "and goes on with others. `fail` ends the run before the epoch that holds it.",
    )
    ddl: tuple[DdlConfig, ...] = Field(
        default=(), description="Tables for which [DDL](ddl.md#one-table-otherwise) means something else."
    )
    unusable: Unusable = Field(
        default=Unusable.FAIL,
        description="What a new feed does about [tables that cannot be carried]"
        "(ddl.md#tables-that-cannot-be-carried): `fail` names all of them and does not begin; `skip` begins "
        "without them, says so at each start and in `status`.",
    )
    new_tables: NewTables = Field(
        default=NewTables.CARRY,
        description="What a feed does about tables that `tables` takes and that [came after it began]"
        "(ddl.md#tables-that-come): `carry` copies and follows each one as soon as every shard has it; `skip` leaves "
        "them out and says so.",
    )
    shadow_tables: tuple[str, ...] = Field(
        default=SHADOWS,
        description="Globs of the names that tools for schema changes give to [their own tables]"
        "(ddl.md#tables-that-come). Such a table does not enter the feed, unless `tables` names it in full.",
    )
    state: Database = Field(
        description="Where plans, manifests and commits are kept: the path of an SQLite file, or a URL of "
        "MySQL or PostgreSQL (its driver: `pip install 'psycopg[binary]'`); `{env: VARIABLE}` keeps the URL's "
        "password out of the file.",
        json_schema_extra={"default": DEFAULT_STATE},
    )
    verify: VerifyConfig = Field(
        default=VerifyConfig(),
        description="How a run [compares by itself](guarantee.md#verify-in-the-background).",
    )
    metrics: MetricsConfig = Field(default=MetricsConfig(), description="Where the [metrics](metrics.md) go.")
    status: StatusConfig = Field(
        default=StatusConfig(), description="Where the [status page](operations.md#the-status-page) is."
    )
    notify: NotifyConfig = Field(
        default=NotifyConfig(),
        description="Who is told when something [happens to the feed](operations.md#being-told).",
    )
    engine: EngineName = Field(
        default=EngineName.SPARK,
        description="What reads: `spark`, from threads of this machine to a cluster; or `local`, a process for each "
        "processor of this machine, without Java.",
    )
    spark: SparkConfig = Field(
        default=SparkConfig(), description="The Spark that reads, with `engine: spark`."
    )

    @model_validator(mode="before")
    @classmethod
    def _default_state(cls, values: Any) -> Any:
        if isinstance(values, dict) and "state" not in values:
            return {**values, "state": DEFAULT_STATE.replace("<name>", str(values.get("name")))}
        return values

    @field_validator("mask_key")
    @classmethod
    def _long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not isinstance(key, Unread) and len(key.get_secret_value()) < MASK_KEY_MIN:
            raise ValueError(f"expected {MASK_KEY_MIN} characters at least: a short key can be guessed")
        return key

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if self.mask_key is None and any(column.mask is Masking.HMAC for column in self.columns):
            raise ValueError("mask: hmac needs a mask_key")
        return self

    @model_validator(mode="after")
    def _knows_replicas(self) -> Self:
        self.must_know_replicas()
        return self

    def must_know_replicas(self) -> None:
        """Raise ValueError where the lag of replicas is limited and a shard does not say which it has."""
        unsaid = [shard.name for shard in self.source.shards if shard.replicas is None]
        if self.copying.throttle.replica_lag is not None and unsaid:
            raise ValueError(
                f"copy.throttle.replica_lag: shard {', '.join(unsaid)} does not say which replicas it has; give "
                "replicas, [] for none"
            )

    @model_validator(mode="after")
    def _fits_sessions(self) -> Self:
        allowed, needs = self.source.sessions_max, self.session_needs()
        if allowed is None:
            return self
        if allowed < needs.least:
            raise ValueError(
                f"source.sessions_max: {allowed} is too few, {needs.least} is the least: the run has {needs.beside} on "
                f"each server all the time (clock, checks of copy.throttle, verify.every), and {GROUP} that read"
            )
        if self.spark.conf.get("spark.speculation", "").lower() == "true":
            raise ValueError("source.sessions_max: spark.speculation runs a task twice at once; leave it out")
        return self

    def session_needs(self) -> Needs:
        """How many sessions the run has on each server."""
        verifies = self.verify.every is not None
        # Checks are made for the copy, for rows that are mended and for those that are compared, each by itself.
        checks = (2 + verifies) * CHECKS if self.copying.throttle.asks_shard else 0
        return Needs(CLOCK + checks + verifies * GROUP, self.copying.groups_per_shard)

    @model_validator(mode="after")
    def _carries_no_marks(self) -> Self:
        marks = self.copying.marks_table
        if self.copying.strategy is Strategy.WATERMARK and takes(self.tables, marks):
            raise ValueError(
                f'copy.marks: {marks} is among the tables of the feed; add "!{marks}" to tables, or name another table'
            )
        return self

    @model_validator(mode="after")
    def _own_ports(self) -> Self:
        status, metrics = self.status, self.metrics
        if status.port is not None and (status.port, status.address) == (metrics.port, metrics.address):
            raise ValueError(
                "status.port and metrics.port are the same: leave out metrics.port, the status page has /metrics"
            )
        return self

    def key_of_masks(self) -> MaskKey | None:
        """The key of the HMACs; None where there is none. Raises LookupError for a file loaded without it."""
        return None if self.mask_key is None else MaskKey(self.mask_key.get_secret_value())

    def enters(self, table: TableId) -> bool:
        """Whether a table that the feed does not carry is to enter it."""
        return takes(self.tables, table) and not is_shadow(self.shadow_tables, self.tables, table)

    def schema_change_of(self, table: TableId) -> SchemaChange:
        """What is done about DDL on a table."""
        return next((one.schema_change for one in self.ddl if one.takes(table)), self.schema_change)

    def changes_for(self, tables: Iterable[TableId]) -> Changes:
        """The same of these tables; they are looked at only where the file names some."""
        if not self.ddl:
            return Changes(self.schema_change)
        said = {table: self.schema_change_of(table) for table in tables}
        return Changes(
            self.schema_change, {table: one for table, one in said.items() if one is not self.schema_change}
        )

    def treatment_of(self, table: TableId) -> Treatment:
        """What is made of a table."""
        mode = next((one.mode for one in self.modes if one.takes(table)), Mode.MIRROR)
        arranged = (one.arrangement() for one in self.arrange if one.takes(table))
        return Treatment(mode, self._rules_for(table), next(arranged, AS_THEY_COME))

    def _rules_for(self, table: TableId) -> tuple[ColumnRule, ...]:
        """What is done with a table's columns, in the file's order."""
        mine = [column for column in self.columns if column.of_table(table)]
        key = self.key_of_masks() if any(column.mask is Masking.HMAC for column in mine) else None
        return tuple(column.rule(key.mark if key else "") for column in mine)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """How to reach each shard, in the file's order."""
        counted = self.source.sessions_max is not None
        return tuple(shard.endpoint(counted=counted) for shard in self.source.shards)

    def shard(self, name: str) -> ShardConfig:
        """The shard of that name; raises KeyError."""
        for shard in self.source.shards:
            if shard.name == name:
                return shard
        raise KeyError(f"feed {self.name} has no shard {name}")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _twice(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
