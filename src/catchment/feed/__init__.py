"""Control: the clock, the planner, the loop, and how a feed begins, goes on and ends."""
