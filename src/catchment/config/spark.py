"""What a feed file says of the engine that reads."""

import re
from enum import Enum

from pydantic import Field, field_validator

from catchment.config.section import Section
from catchment.config.values import SettingText

# Of anything else Java says so, in a stack trace (Spark manual: Master URLs).
_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://\S+|yarn|k8s://\S+")
# Spark knows by name what it must not show (`spark.redaction.regex`). It does not know the names of keys: Azure's
# `account.key.NAME`, S3's `encryption.key`, Google's `private.key` and credentials as JSON.
_SECRET_SETTING = re.compile(
    r"(?i)secret|passw(or)?d|passphrase|[._-]pwd|token|(access|api)[._-]?key|[._-]key($|\.)|\.azure\.sas\.|"
    r"credential$|credential.*json"
)
# Names among them of files, classes, lengths and Kubernetes' own secrets: the secret stands elsewhere.
_SECRET_ELSEWHERE = re.compile(
    r"(?i)((file|path|alias|bitlength|\.enabled?|provider(s|\.(type|path|uri))?)"
    r"|tokenSecret\.(name|itemKey)|\.secretKeyRef\.\w+|\.(driver|executor)\.secrets\.[^.]+|pullSecrets)$"
)


class EngineName(Enum):
    """What reads."""

    SPARK = "spark"
    LOCAL = "local"


class SparkConfig(Section):
    """The Spark that reads."""

    master: str = Field(default="local[2]", description="Spark master.")
    conf: dict[str, SettingText] = Field(
        default={},
        description="Further Spark settings, which win over [a feed's own](operations.md#settings-of-spark); "
        "those that are secrets belong into Spark's own `spark-defaults.conf`.",
    )

    @field_validator("master")
    @classmethod
    def _known(cls, master: str) -> str:
        if _MASTER.fullmatch(master) is None:
            raise ValueError(
                "expected local, local[4], local[*], spark://host:port, yarn or k8s://https://host:port"
            )
        return master

    @field_validator("conf")
    @classmethod
    def _no_secrets(cls, conf: dict[str, str]) -> dict[str, str]:
        named = [name for name in conf if _SECRET_SETTING.search(name)]
        secrets = [name for name in named if not _SECRET_ELSEWHERE.search(name)]
        if secrets:
            raise ValueError(
                f"{', '.join(secrets)}: PySpark hands these settings to Java in the process list; "
                "write them into spark-defaults.conf in the directory that SPARK_CONF_DIR names"
            )
        return conf
