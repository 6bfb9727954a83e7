"""How long tests wait for what must come.

Long enough for a machine that does ten other things at once; a wait that is met costs nothing. What never comes still
ends a test before pytest's own limit (`timeout` in pyproject.toml).
"""

PATIENCE_SECONDS = 500.0
