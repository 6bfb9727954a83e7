"""Small file systems that fill up, and files that may not be written."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A directory on a file system of its own; `resize` needs root, as making it does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def free(self) -> int:
        """Bytes that can still be written."""
        state = os.statvfs(self.path)
        return state.f_bavail * state.f_bsize

    def resize(self, size: int) -> None:
        """Give it another size in bytes."""
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.path)], check=True)

    def make_read_only(self) -> None:
        """As a disk is mounted after a fault, or by an oversight."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a file system of `size` bytes in memory; skips the test where that is not allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def unwritable(file: Path) -> Iterator[None]:
    """A file of a directory that stays writable; skips the test where root may not mount the file on itself."""
    if os.geteuid() != 0:
        mode = file.stat().st_mode
        file.chmod(0o400)
        try:
            yield
        finally:
            file.chmod(mode)
        return
    if subprocess.run(["mount", "--bind", str(file), str(file)], capture_output=True, check=False).returncode:
        pytest.skip("a file cannot be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(file)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(file)], check=True)
