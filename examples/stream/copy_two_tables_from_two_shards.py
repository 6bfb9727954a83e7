"""Copy two tables from two shards, then follow them (seed 004). Usage: FEED.yaml EVENTS"""

import sys
from itertools import islice

import catchment

feed, events = sys.argv[1], int(sys.argv[2])
rules = [
    {"match": "t2", "filter": "select id, val from t2"},
    {"match": "t1", "filter": "select * from t1"},
]
vgtid = [
    {"keyspace": "ks", "shard": "-40", "gtid": ""},
    {"keyspace": "ks", "shard": "40-c0", "gtid": ""},
]
with catchment.stream(feed, vgtid=vgtid, rules=rules) as stream:
    for event in islice(stream, events):
        print(event, flush=True)
