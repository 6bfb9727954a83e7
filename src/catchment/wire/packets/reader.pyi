class PacketReader:
    """Cuts a stream of bytes into packets; used by compiled decoders only (see reader.pxd)."""
