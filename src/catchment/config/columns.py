"""What a feed file says about columns."""

import re
from fnmatch import fnmatchcase
from typing import Self

from pydantic import Field, field_validator, model_validator

from catchment.config.section import Section
from catchment.config.values import ColumnName
from catchment.model.column_rule import ColumnRule, Masking
from catchment.model.table import TableId

_OF_COLUMN = re.compile(r"[^.\n]+\.[^\n]+\.[^.\n]+")


class ColumnConfig(Section):
    """What is done with some columns before anything of them is kept."""

    match: str = Field(
        description='Which: `schema.table.column`, each a name or a glob, as `"*.*.password*"`. Of the rules that '
        "take a column the first one counts.",
    )
    exclude: bool = Field(default=False, description="Leave the columns out: they are not even read.")
    mask: Masking | None = Field(
        default=None,
        description="What stands in the place of a value: `hmac`, its HMAC-SHA-256 under `mask_key` in hexadecimal "
        "digits, by which rows can still be joined; `partial`, its last characters behind `****`; `nulls`, nothing.",
    )
    show: int = Field(default=4, ge=0, le=64, description="Characters at the end that `partial` shows.")
    rename: ColumnName | None = Field(default=None, description="Name in the lake of the one column.")

    @field_validator("match")
    @classmethod
    def _parts(cls, match: str) -> str:
        if not _OF_COLUMN.fullmatch(match):
            raise ValueError(f"{match} is not of the form schema.table.column")
        return match

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.exclude and (self.mask or self.rename):
            raise ValueError("a column that is excluded can be neither masked nor renamed")
        if not (self.exclude or self.mask or self.rename):
            raise ValueError("say what to do: exclude: true, mask: hmac, partial or nulls, or rename")
        return self

    def takes(self, table: TableId, column: str) -> bool:
        """Whether it is for a column."""
        return self.of_table(table) and self.rule("").takes(column)

    def of_table(self, table: TableId) -> bool:
        """Whether it is for some column of a table."""
        schema, name, _ = self._split()
        return fnmatchcase(table.schema, schema) and fnmatchcase(table.name, name)

    def rule(self, key_mark: str) -> ColumnRule:
        """It, for one table."""
        return ColumnRule(
            self._split()[2],
            self.exclude,
            self.mask,
            self.show if self.mask is Masking.PARTIAL else 0,
            key_mark if self.mask is Masking.HMAC else "",
            self.rename or "",
        )

    def _split(self) -> tuple[str, str, str]:
        schema, _, rest = self.match.partition(".")
        table, _, column = rest.rpartition(".")
        return schema, table, column
