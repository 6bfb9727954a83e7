"""Look at every shard, the lake and the state store before a feed runs; change nothing but a mark of a feed that
writes marks."""

from catchment.doctor.examine import examine, must_be_set_up, must_take
from catchment.doctor.finding import Diagnosis, Finding, Severity
from catchment.doctor.strategies import must_allow

__all__ = ["Diagnosis", "Finding", "Severity", "examine", "must_allow", "must_be_set_up", "must_take"]
