"""The seed that finds each planted mistake, so that the search for it need not be repeated.

Whatever changes the order of steps shifts them; then the test searches again and says which seed to write here.
"""

FOUND_BY: dict[str, int] = {}
