"""What statements do to tables: DDL followed, texts judged, shapes merged."""
