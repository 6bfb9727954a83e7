"""Copy all tables of all keyspaces, then follow them (seed 004). Usage: FEED.yaml EVENTS"""

import sys
from itertools import islice

import catchment

feed, events = sys.argv[1], int(sys.argv[2])
with catchment.stream(feed, vgtid=[{"gtid": ""}], rules=[{"match": "/.*/"}]) as stream:
    for event in islice(stream, events):
        print(event, flush=True)
