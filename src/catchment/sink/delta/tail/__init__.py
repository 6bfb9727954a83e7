"""The tails of tables: epochs go there at once, as files and one commit for each touched table."""
