"""Compiled, used by contents.py only (see sparse.pxd)."""
