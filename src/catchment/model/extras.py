"""Which extra of the package has what an installation lacks."""

from collections.abc import Iterator
from contextlib import contextmanager

from catchment.model.errors import NotInstalled

# What only Spark needs is in `feed`; with `engine: local` a feed runs without it.
_OF_SPARK = frozenset({"pyspark", "py4j"})


@contextmanager
def needing(what: str, extra: str, otherwise: str = "") -> Iterator[None]:
    """Say which extra has a package that the block imports and that is not there. `what`: what needs it; `otherwise`:
    what can be done without it.

    Raises NotInstalled. A module of Catchment's own that is missing is a fault of the program, and passes as it is.
    """
    try:
        yield
    except ModuleNotFoundError as fault:
        missing = (fault.name or "").partition(".")[0]
        if not missing or missing == "catchment":
            raise
        if missing in _OF_SPARK:
            raise NotInstalled(
                f"{what} needs pip install 'catchment[feed]' ({missing} is missing); a feed with `engine: local` needs "
                "neither PySpark nor Java"
            ) from None
        said = f"{what} needs pip install 'catchment[{extra}]' ({missing} is missing)"
        raise NotInstalled(f"{said}; or {otherwise}" if otherwise else said) from None
