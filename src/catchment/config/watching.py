"""What a feed file says of who may look at a run, and who is told what happens to it."""

from enum import Enum
from typing import Annotated

from pydantic import Field, SecretStr, field_validator

from catchment.config.section import Section
from catchment.config.values import FilePath, Secret, Unread


class MetricsConfig(Section):
    """Where Prometheus finds the numbers; neither means nowhere."""

    file: FilePath | None = Field(
        default=None,
        description="Text file, replaced whole at every epoch, every five seconds at least, and at the end.",
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="HTTP port on `address`.")
    address: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address of this host that `port` is opened on; `0.0.0.0` means all. No password protects it, and "
        "the metrics name shards and tables.",
    )


class StatusConfig(Section):
    """Where a run shows itself to people; no port means nowhere."""

    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="HTTP port of the [status page](operations.md#the-status-page) of a run, on `address`. It has "
        "`/healthz` and `/metrics`, too.",
    )
    address: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address of this host that `port` is opened on; `0.0.0.0` means all. No password protects it, and "
        "the page names shards, tables, errors and who gave orders.",
    )


class NotifyEvent(Enum):
    """What a feed tells of."""

    START = "start"
    END = "end"
    STANDSTILL = "standstill"
    RETENTION = "retention"
    NEW_TABLE = "new_table"
    SHARD_AWAY = "shard_away"
    STATE_AWAY = "state_away"
    LAKE_AWAY = "lake_away"
    STALE = "stale"
    DIFFERENCE = "difference"


class NotifyConfig(Section):
    """Whom the feed tells what happens to it; neither means nobody."""

    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Program and arguments, which find one JSON object on standard input; ended after ten seconds.",
    )
    url: Secret | None = Field(
        default=None,
        description="`http://` or `https://` address that the same JSON is POSTed to. It may hold a token: "
        "`{env: VARIABLE}`, `{file: path}` or a text in quotes; never shown.",
    )
    on: tuple[NotifyEvent, ...] = Field(
        default=tuple(NotifyEvent),
        description="Which events.",
    )

    @field_validator("url")
    @classmethod
    def _can_be_posted_to(cls, url: SecretStr | None) -> SecretStr | None:
        if (
            url is None
            or isinstance(url, Unread)
            or url.get_secret_value().startswith(("http://", "https://"))
        ):
            return url
        raise ValueError("expected an address that begins with http:// or https://")
