"""Streams for programs."""
