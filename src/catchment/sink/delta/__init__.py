"""Apply an epoch to a Delta lake, exactly once; its files, its epochs, its cleaning."""
