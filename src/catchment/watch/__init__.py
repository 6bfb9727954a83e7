"""What others see of a run: metrics, notices, troubles, status."""
