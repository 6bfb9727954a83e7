"""Values that every layer shares. Imports nothing else of Catchment, does no input or output."""
