"""Files of a lake, in directories or in an object store."""
