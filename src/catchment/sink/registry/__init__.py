"""Which sinks there are: the one place that knows them all."""
