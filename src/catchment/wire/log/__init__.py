"""The log: its events, groups, rows and the facts beside them."""
