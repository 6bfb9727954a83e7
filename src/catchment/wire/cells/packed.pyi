"""Cells that need more than a copy: compiled, used by rows.py only (see cells.pxd)."""
