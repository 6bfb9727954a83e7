"""Groups of MySQL: compiled, the part of LogDecoder below log.py (see transactions.pxd)."""
