"""A stage in memory, for sinks whose tasks run in this process."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class MemoryStage:
    """Keeps rows by name."""

    held: dict[str, pa.Table] = field(default_factory=dict)

    def put(self, name: str, rows: pa.Table) -> None:
        """As the port has it."""
        self.held[name] = rows

    def take(self, name: str) -> pa.Table:
        """As the port has it."""
        return self.held[name]

    def remove(self, names: Iterable[str]) -> None:
        """As the port has it."""
        for name in names:
            self.held.pop(name, None)
