"""Changes of a source in Arrow, as programs get them."""
