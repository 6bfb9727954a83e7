"""Row events: compiled, used by log.py only (see rows.pxd)."""
