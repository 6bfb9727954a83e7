"""Targets of a feed."""
