"""Ask a shard: sessions, catalog, log, SELECTs, and what proves a position."""
