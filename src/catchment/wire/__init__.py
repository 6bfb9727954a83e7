"""Bytes of the MySQL protocol and its log to Arrow, and rows to ordered keys."""
