"""Where epochs are applied and read: the ports that every target has."""
