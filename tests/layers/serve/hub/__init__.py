"""Shared readers by themselves."""
