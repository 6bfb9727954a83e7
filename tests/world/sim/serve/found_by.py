"""The seed that finds each planted mistake of the server of streams (tests/world/sim/found_by.py says why)."""

FOUND_BY: dict[str, int] = {}
