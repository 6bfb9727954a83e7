"""The epochs table, from which readers and runs start."""
