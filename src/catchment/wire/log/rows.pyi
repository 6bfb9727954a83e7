"""Row events: compiled, used by decoder.py only (see rows.pxd)."""
