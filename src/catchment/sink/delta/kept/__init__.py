"""The past beyond the readers' window: which epochs are kept, in which versions of tables, with which files."""
