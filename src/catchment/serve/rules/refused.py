"""Why a part of a filter is not taken."""


class Refused(ValueError):
    """Something that a filter says and that is not known to give what the server gives: what, why, and what to write
    instead."""
