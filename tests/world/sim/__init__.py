"""The real loop, clock, lease, planner and state store in a world that one seed decides: who runs, how long a pause is,
what breaks.
"""
