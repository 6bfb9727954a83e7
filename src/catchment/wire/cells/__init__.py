"""Single values: types, character sets, and the memory of Arrow columns."""
