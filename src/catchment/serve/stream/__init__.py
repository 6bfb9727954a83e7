"""The stream API: rows that exist and then their changes, as typed events or as Arrow batches, resumed by a vgtid."""
