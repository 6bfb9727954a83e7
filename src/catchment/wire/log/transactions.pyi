"""Groups of MySQL: compiled, the part of LogDecoder below decoder.py (see transactions.pxd)."""
