"""What a person sees of the comparisons that a run makes in the background."""

from collections.abc import Iterator

from catchment.watch.status import ComparisonStatus, VerificationStatus


def comparison_lines(found: VerificationStatus, *, runs: bool) -> Iterator[str]:
    """The last one, the one that has begun, and when the next begins. `runs`: somebody runs the feed."""
    if found.last is not None:
        yield f"compared in the background, {found.last.began} to {found.last.ended}: {_found(found.last)}"
        for why in found.last.left:
            yield f"not mended: {why}"
    if found.now is not None:
        far = f"{found.now.rows:,} of about {found.now.expected:,} rows"
        yield f"comparing in the background since {found.now.began}: {far}, {_differences(found.now)}"
        if not runs:
            yield "it goes on with the next run"
        elif found.now.waits:
            yield f"it waits: {found.now.waits}"
    if found.next:
        yield f"the next comparison begins at {found.next}"


def _found(last: ComparisonStatus) -> str:
    mended = f", {last.mended:,} of them mended" if last.mended else ""
    log_alone = f", {last.unproven:,} keys compared by the log alone" if last.unproven else ""
    return f"{last.rows:,} rows as of epoch {last.epoch_text}, {_differences(last)}{mended}{log_alone}"


def _differences(one: ComparisonStatus) -> str:
    if not one.tables:
        return "no difference"
    return ", ".join(f"{keys:,} keys of {table} differ" for table, keys in sorted(one.tables.items()))
