"""Delta's log of a table: what its versions hold, and how one is added."""
