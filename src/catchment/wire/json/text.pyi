"""Compiled, used by rows.py only (see jsontext.pxd)."""
