"""Rows of some keys taken out of every file of a table, and their values out of its logs."""
