"""DuckDB views of a whole lake as of one epoch, as SQL text."""

import os
from pathlib import Path

from catchment.api.read import Lake, committed, state
from catchment.api.rule import double_quoted
from catchment.flow.sink.layout import epochs_dir
from catchment.model.table import TableId

_HEADER = """\
-- Views of every table as of epoch {epoch}: a snapshot. They name files, which stay for a while after a fold
-- replaced them; then this text has to be written again. For live reads use catchment.read() from Python.
"""


def views(lake: Lake, epoch: int | None = None, *, feed: str | None = None) -> str:
    """SQL text that creates a DuckDB schema per source schema and a view per table, all as of one epoch.

    The views are a snapshot: each names the files of its table's version, so they do not follow the feed,
    and fail once the cleaner has removed a file. For live reads use `read`, which looks up the newest epoch.
    """
    root, row = committed(lake, epoch, feed)
    text = [_HEADER.format(epoch=row.commit.epoch)]
    tables = [TableId.parse(name) for name in sorted(row.commit.versions)]
    for schema in sorted({table.schema for table in tables}):
        text.append(f"CREATE SCHEMA IF NOT EXISTS {double_quoted(schema)};\n")
    for table in tables:
        name = f"{double_quoted(table.schema)}.{double_quoted(table.name)}"
        text.append(f"CREATE OR REPLACE VIEW {name} AS\n{state(root, row, table).sql()};\n")
    return "\n".join(text)


def write_views(lake: Lake, *, feed: str | None = None) -> Path:
    """Write the views as of the newest epoch to `_catchment/views.sql`, replaced whole; its path.

    The loop calls this after folds and schema changes.
    """
    root, _ = committed(lake, None, feed)
    target = epochs_dir(root).parent / "views.sql"
    fresh = target.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(views(lake, feed=feed), encoding="utf-8")
    fresh.replace(target)
    return target
