"""Which Catchment this is, and what it writes."""

__version__ = "0.1.0"
# What the tables of a lake look like; those of a lake without the mark are of layout 0 (docs/upgrade.md).
LAKE_LAYOUT = 3
# How plan, manifest and commit are written (model/records.py); those without a version are of version 1.
# An earlier Catchment would overlook what versions have more: 4 stale tables and generations, 5 the values that columns
# came with. Of 6 it would show rows that a TRUNCATE took, and overlook former types of columns. Of 7 it would show no
# value of renamed columns, and put the files of a shadow table elsewhere. Of 8 it would replace the past of rows by a
# new copy. Of 9 it would replace the rows of all shards by those of some.
RECORD_VERSION = 9
