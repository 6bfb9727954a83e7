"""Read one piece of an epoch: a segment of a log, or a group of chunks."""
