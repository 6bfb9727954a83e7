"""`catchment tail` as a process."""

import subprocess
import sys

TAIL = [sys.executable, "-m", "catchment.cli.main", "tail"]
Tail = subprocess.Popen[str]
