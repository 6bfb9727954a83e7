"""Keep shards that lag and others together (seed 003). Usage: FEED.yaml EVENTS"""

import sys
from itertools import islice

import catchment
from catchment.serve.stream.flags import Flags

feed, events = sys.argv[1], int(sys.argv[2])
with catchment.stream(feed, vgtid="current", flags=Flags(minimize_skew=True)) as stream:
    for event in islice(stream, events):
        print(event, flush=True)
