"""Packets of the protocol: replies, result sets, requests."""
