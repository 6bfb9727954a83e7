"""Compiled, used by jsontext.py only (see jsonscalars.pxd)."""
