"""Read a Delta lake as of an epoch."""
