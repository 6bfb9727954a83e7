"""Shares one reader of the shards among the clients of a server."""
