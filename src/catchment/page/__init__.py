"""The status page of a run, and its metrics over HTTP: read only, from memory, by one small server."""
