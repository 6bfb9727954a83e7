class EventReader:
    """Opens one event after another and knows where the reader stands in its file; see events.pxd."""
