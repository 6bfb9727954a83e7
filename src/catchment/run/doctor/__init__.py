"""`catchment doctor`: look at every shard, the lake and the state store before a feed runs; change
nothing."""

from catchment.run.doctor.examine import examine, must_be_set_up
from catchment.run.doctor.finding import Finding, Severity
from catchment.run.doctor.tables import unmatched_rules

__all__ = ["Finding", "Severity", "examine", "must_be_set_up", "unmatched_rules"]
