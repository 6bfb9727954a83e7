"""Stream from the current position of all keyspaces (seed 004). Usage: FEED.yaml EVENTS [FEED.yaml ...]"""

import sys
from itertools import islice

import catchment

feeds, events = [sys.argv[1], *sys.argv[3:]], int(sys.argv[2])
with catchment.stream(feeds, vgtid=[{"gtid": "current"}]) as stream:
    for event in islice(stream, events):
        print(event, flush=True)
