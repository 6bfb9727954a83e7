"""A figure beside its reference, both from the same run."""

import statistics
from collections.abc import Sequence
from typing import Any

Figure = dict[str, Any]


def figure(
    name: str,
    values: Sequence[float],
    unit: str,
    reference: str,
    reference_values: Sequence[float],
    digits: int = 0,
) -> Figure:
    """Medians of `values` and of `reference_values`; the ratio is the median of the ratios of pairs.

    The two lists come from interleaved runs, so that a pair was measured under about the same load.
    """
    pairs = [v / r for v, r in zip(values, reference_values, strict=True) if r]
    return {
        "name": name,
        "value": rounded(statistics.median(values), digits),
        "unit": unit,
        "reference": reference,
        "reference_value": rounded(statistics.median(reference_values), digits),
        "ratio": round(statistics.median(pairs), 3) if pairs else 0.0,
        "runs": len(values),
    }


def rounded(value: float, digits: int) -> float:
    """A number without a fraction when there are no digits."""
    return round(value, digits) if digits else round(value)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
