"""Values: what is known of shards, positions, tables, epochs and errors."""
