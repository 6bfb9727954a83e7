"""The Java that Spark starts: which it is, and what is wrong with it."""

import os
import re
import subprocess
from pathlib import Path

JAVA_MIN = 17  # Spark 4 documentation: Downloading
_ANSWER_SECONDS_MAX = 20.0
# `17.0.15`, `21`, and of the old ones `1.8.0_402`.
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_fault() -> str:
    """What is wrong with the Java that Spark's start script takes, JAVA_HOME's or else the one on PATH, and what to do.
    Empty when that is recent enough, or when a spark-env.sh may choose another."""
    if _environment_script().is_file():
        return ""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    named = f"{java} (JAVA_HOME)" if home else f"{java} (on PATH, JAVA_HOME is not set)"
    remedy = f"install Java {JAVA_MIN} or later, or set JAVA_HOME to one"
    try:
        asked = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it does not answer"
        return f"no Java can be started as {named}: {why}; {remedy}"
    found = _VERSION.search(asked.stderr)
    if asked.returncode or found is None:
        return f"{named} does not say its version (exit code {asked.returncode}); {remedy}"
    if int(found[1]) < JAVA_MIN:
        return f"{named} is Java {found[1]}, too old for Spark; {remedy}"
    return ""


def _environment_script() -> Path:
    """Where Spark's start script looks for settings of the environment."""
    home = os.environ.get("SPARK_HOME", "")
    return Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf", "spark-env.sh")
