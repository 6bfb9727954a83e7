"""Fold changes into the base of a lake table, beside the feed."""
