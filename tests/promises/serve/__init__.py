"""A server of streams: its clients, and the readers that they share."""
