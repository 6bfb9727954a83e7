"""Stream from one position of all shards of a keyspace (seed 004). Usage: FEED.yaml EVENTS GTID"""

import sys
from itertools import islice

import catchment

feed, events, gtid = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with catchment.stream(feed, vgtid=[{"keyspace": "ks", "gtid": gtid}]) as stream:
    for event in islice(stream, events):
        print(event, flush=True)
