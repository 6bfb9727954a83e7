"""Strings that are more than a copy: compiled, used by rows.py only (see strings.pxd)."""
