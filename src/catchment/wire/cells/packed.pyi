"""Cells that need more than a copy: compiled, used by wire/log/rows.py only (see packed.pxd)."""
