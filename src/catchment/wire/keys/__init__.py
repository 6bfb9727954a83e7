"""Keys of rows as bytes: their identity, their order, and rows spliced by them."""
