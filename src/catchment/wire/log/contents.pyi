class Contents:
    """Decodes the events inside groups; LogDecoder adds what lies between them (see contents.pxd)."""
