"""Read a lake as of an epoch."""
