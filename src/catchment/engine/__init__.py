"""Who runs the pieces: Spark."""
