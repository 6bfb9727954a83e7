"""Stream from the current position of two shards (seed 004). Usage: FEED.yaml EVENTS"""

import sys
from itertools import islice

import catchment

feed, events = sys.argv[1], int(sys.argv[2])
vgtid = [
    {"keyspace": "ks", "shard": "-40", "gtid": "current"},
    {"keyspace": "ks", "shard": "c0-", "gtid": "current"},
]
with catchment.stream(feed, vgtid=vgtid) as stream:
    for event in islice(stream, events):
        print(event, flush=True)
