"""A mistake is one text of the source in the place of another. It is planted in a copy, which a test then runs on.

So commands that a test starts, and tasks on executors, have the mistake, too. Compiled modules cannot have one: their
machine code would not know of it.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.suite.drawn import VARIABLE
from tests.tidy.sources import ROOT

SOURCE = ROOT / "src"
_SECONDS_MAX = 900


@dataclass(frozen=True)
class Mistake:
    """A rule of the product taken away.

    `file` lies below src/catchment and has the text `right` exactly once; `wrong` replaces it. `found_by` is the node
    id, below tests/, of the test that fails then.
    """

    name: str
    file: str
    right: str
    wrong: str
    found_by: str

    @property
    def path(self) -> Path:
        """The file that has the rule."""
        return SOURCE / "catchment" / self.file

    def faults(self) -> list[str]:
        """Why it cannot be planted, or found by the test that it names."""
        text = self.path.read_text()
        file, _, function = self.found_by.partition("::")
        test = ROOT / "tests" / file
        found = []
        if text.count(self.right) != 1:
            found.append(f"{self.file} has its text {text.count(self.right)} times")
        if "# cython: compiled" in text[:200]:
            found.append(f"{self.file} is compiled")
        if not test.exists() or f"def {function.partition('[')[0]}(" not in test.read_text():
            found.append(f"there is no test {self.found_by}")
        return found

    def plant(self, directory: Path) -> Path:
        """A copy of the source with the mistake in it, below a directory."""
        copy = directory / "src"
        # Compiled modules are large, so all files are links, but the one.
        shutil.copytree(SOURCE, copy, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
        planted = copy / "catchment" / self.file
        planted.unlink()
        planted.write_text(self.path.read_text().replace(self.right, self.wrong))
        return copy

    def run(self, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run the test that is to find it; pytest's exit code is 1 when it does."""
        source = self.plant(directory)
        options = ["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider"]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"tests/{self.found_by}"],
            cwd=ROOT,
            # Whether it is found must not depend on what the commit draws.
            env={**os.environ, "PYTHONPATH": f"{source}:{ROOT}", "PYTEST_ADDOPTS": "", VARIABLE: "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_MAX,
        )  # fmt: skip
