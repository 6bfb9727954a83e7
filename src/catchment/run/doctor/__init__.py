"""`catchment doctor`: look at every shard, the lake and the state store before a feed runs; change
nothing."""

from catchment.run.doctor.examine import examine, must_be_set_up, must_take
from catchment.run.doctor.finding import Finding, Severity

__all__ = ["Finding", "Severity", "examine", "must_be_set_up", "must_take"]
