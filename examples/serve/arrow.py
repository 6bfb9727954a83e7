"""Print a table's rows and changes as Arrow Flight has them, until Ctrl-C. Usage: ADDRESS FEED SCHEMA.TABLE [VGTID]

STREAM_TOKEN has the token, STREAM_CA the file of the certificate's authority; without that, the connection is plain.
"""

import json
import os
import sys
from pathlib import Path

from pyarrow import flight

address, feed, table, vgtid = (*sys.argv[1:], "")[:4]
token, authority = os.environ["STREAM_TOKEN"], os.environ.get("STREAM_CA")
if authority:
    client = flight.connect(f"grpc+tls://{address}", tls_root_certs=Path(authority).read_bytes())
else:
    client = flight.connect(f"grpc://{address}")
ticket = flight.Ticket(json.dumps({"feed": feed, "table": table, "vgtid": vgtid}).encode())
options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
try:
    for chunk in client.do_get(ticket, options):
        if chunk.app_metadata:
            print(json.loads(chunk.app_metadata.to_pybytes()), flush=True)
        for row in chunk.data.to_pylist():
            print(row, flush=True)
except flight.FlightError as ended:
    sys.exit(str(ended))
