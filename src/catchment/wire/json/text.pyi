"""Compiled, used by wire/log/rows.py only (see text.pxd)."""
