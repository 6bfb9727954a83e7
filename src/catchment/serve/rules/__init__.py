"""Rules of a stream: which rows of which tables it gives, and what of them. Pure, over Arrow columns."""
