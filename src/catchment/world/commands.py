"""What a command says, in bounded time and in few words: for secrets, of which nothing may be shown.

A message names the program alone: its arguments, its output and what it writes to standard error may quote a secret.
"""

import os
import select
import signal
import subprocess
import time
from contextlib import suppress

COMMAND_SECONDS_MAX = 10.0
_ANSWER_BYTES_MAX = 65536


def said_by(command: tuple[str, ...]) -> str:
    """What a command prints, without the end of its line. It runs without a shell, and for a bounded time. Raises
    ValueError, which names the program alone, where it fails."""
    name = command[0]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is for the run
        )
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or type(fault).__name__
        raise ValueError(f"the command {name} cannot be started: {why}") from None
    deadline = time.monotonic() + COMMAND_SECONDS_MAX
    try:
        said = _output(process, deadline)
        code = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"the command {name} took more than {COMMAND_SECONDS_MAX:.0f} s and was ended"
        ) from None
    finally:
        _end(process)
    if code:
        raise ValueError(f"the command {name} ended with exit code {code}")
    if len(said) > _ANSWER_BYTES_MAX:
        raise ValueError(f"the command {name} printed more than a password")
    try:
        text = said.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"the command {name} printed what is not UTF-8 text") from None
    if not text:
        raise ValueError(f"the command {name} printed nothing")
    return text


def _output(process: "subprocess.Popen[bytes]", deadline: float) -> bytes:
    """What it prints until it closes its output, or prints too much. Raises TimeoutExpired."""
    assert process.stdout is not None
    said, place = b"", process.stdout.fileno()
    while len(said) <= _ANSWER_BYTES_MAX:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([place], [], [], left)[0]:
            raise subprocess.TimeoutExpired(process.args, COMMAND_SECONDS_MAX)
        part = os.read(place, _ANSWER_BYTES_MAX)
        if not part:
            break
        said += part
    return said


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Let nothing of it go on, and give up its output."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
