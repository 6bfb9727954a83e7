"""MySQL's binary JSON: its text, and differences applied to it."""
