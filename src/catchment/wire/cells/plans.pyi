"""Table maps made ready for decoding: compiled, used by compiled modules only (see plans.pxd)."""
