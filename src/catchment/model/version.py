"""Which Catchment this is, and what it writes."""

__version__ = "0.1.0"
# What the tables of a lake look like; those of a lake without the mark are of layout 0 (docs/upgrade.md).
LAKE_LAYOUT = 3
# How plan, manifest and commit are written (model/records.py); those without a version are of version 1.
# Version 4 has stale tables and generations, which an earlier Catchment would overlook.
RECORD_VERSION = 4
