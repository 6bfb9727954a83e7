"""Compiled, used by text.py only (see scalars.pxd)."""
