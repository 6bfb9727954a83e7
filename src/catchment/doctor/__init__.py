"""Look at every shard, the lake and the state store before a feed runs; change nothing."""

from catchment.doctor.examine import examine, must_be_set_up, must_take
from catchment.doctor.finding import Diagnosis, Finding, Severity

__all__ = ["Diagnosis", "Finding", "Severity", "examine", "must_be_set_up", "must_take"]
