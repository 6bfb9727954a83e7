"""The plain table: a Delta table with deletion vectors, of which each version is one exact epoch for every reader."""
