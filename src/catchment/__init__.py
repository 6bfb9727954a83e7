"""Catchment: copy a sharded MySQL or MariaDB into a lakehouse, exact at every epoch."""

__version__ = "0.1.0"
