"""Servers, tables and writers to try Catchment with."""
