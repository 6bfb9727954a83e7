"""Compiles the hot modules. Everything else about the build is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Modules in pure-Python syntax whose source is compiled; each has a .pyi beside it for the type checker.
WIRE = Path("src/catchment/wire")
HOT = sorted(str(p) for p in WIRE.rglob("[a-z]*.py") if "# cython: compiled" in p.read_text()[:200])
# A sanitizer of the compiler, e.g. `address`; dev/sanitized builds and runs with it.
SANITIZER = os.environ.get("CATCHMENT_SANITIZE", "")
# Count how often each line runs, and compile these modules for it as well, as they are; dev/covered does so.
COVERED = [str(WIRE / f"{name}.py") for name in os.environ.get("CATCHMENT_COVERED", "").split()]
COUNTERS = ["--coverage"] if COVERED else []
LINK = [f"-fsanitize={SANITIZER}"] if SANITIZER else COUNTERS
COMPILE = (
    ["-O1", "-g", "-fno-omit-frame-pointer", *LINK] if SANITIZER else ["-O0", *LINK] if COVERED else ["-O3"]
)
PROCESSORS = os.cpu_count() or 1


def extension(path: str) -> Extension:
    """The compiled module of a source file; zlib computes the checksums of log events."""
    name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return Extension(name, [path], extra_compile_args=COMPILE, extra_link_args=LINK, libraries=["z"])


def compiled(paths: list[str], **directives: bool) -> list[Extension]:
    """The modules as C."""
    found: list[Extension] = cythonize(
        [extension(path) for path in paths],
        compiler_directives={"language_level": 3, **directives},
        build_dir="build/covered-c" if COVERED else "build",
        nthreads=PROCESSORS,
    )
    return found


setup(
    ext_modules=compiled(HOT, boundscheck=False, wraparound=False, cdivision=True) + compiled(COVERED),
    options={"build_ext": {"parallel": PROCESSORS}},
)
