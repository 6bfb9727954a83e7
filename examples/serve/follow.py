"""Print a feed's events as JSON, one a line, until Ctrl-C. Usage: ADDRESS FEED [VGTID]

STREAM_TOKEN has the token, STREAM_CA the file of the certificate's authority; without that, the connection is plain.
The modules below are made from the published protobuf:

    python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. catchment_stream/v1/stream.proto
"""

import os
import sys
from pathlib import Path

import grpc
from catchment_stream.v1.stream_pb2 import StreamRequest
from catchment_stream.v1.stream_pb2_grpc import StreamsStub
from google.protobuf.json_format import MessageToJson

address, feed, vgtid = (*sys.argv[1:], "")[:3]
token, authority = os.environ["STREAM_TOKEN"], os.environ.get("STREAM_CA")
if authority:
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(Path(authority).read_bytes()))
else:
    channel = grpc.insecure_channel(address)
with channel:
    request = StreamRequest(feed=feed, vgtid=vgtid)
    batches = StreamsStub(channel).Stream(request, metadata=[("authorization", f"Bearer {token}")])
    try:
        for batch in batches:
            for event in batch.events:
                print(MessageToJson(event, indent=None), flush=True)
    except KeyboardInterrupt:
        batches.cancel()
    except grpc.RpcError as ended:
        sys.exit(f"{ended.code().name}: {ended.details()}")
