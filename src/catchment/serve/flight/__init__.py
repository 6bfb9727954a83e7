"""One table of a stream by Arrow Flight: rows in batches, and where they end beside them."""
