"""Compiles the hot modules. Everything else about the build is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Modules in pure-Python syntax whose source is compiled; each has a .pyi beside it for the type checker.
HOT = sorted(str(p) for p in Path("src/catchment/wire").glob("[a-z]*.py") if "# cython: compiled" in p.read_text()[:200])

setup(
    ext_modules=cythonize(
        [Extension(p.removeprefix("src/").removesuffix(".py").replace("/", "."), [p], extra_compile_args=["-O3"], libraries=["z"]) for p in HOT],
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
        build_dir="build",
    )
)
