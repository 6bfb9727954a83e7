"""Where epochs are applied: the port that every target has."""
