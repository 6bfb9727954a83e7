"""The program of the S3 server: Versity's gateway over a directory.

We know of no package of PyPI or Debian whose conditional puts are atomic.
"""

import functools
from pathlib import Path

from tests.world.servers.builds import kept
from tests.world.servers.compiled import compile_program

# It decides on `If-None-Match: *` and puts the object under one lock (versity/versitygw#2288).
_VERSION = "1.8.0"


@functools.cache
def versity() -> Path:
    """The gateway (45 MB; 70 MB of Go and 100 MB of sources are fetched to compile it). Raises NotHere."""
    home = kept(
        f"versitygw-{_VERSION}",
        lambda target: compile_program(target, "github.com/versity/versitygw", _VERSION, "cmd/versitygw"),
    )
    return home / "versitygw"
