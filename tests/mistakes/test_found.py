"""Each planted mistake is found by the test that the catalogue names."""

from pathlib import Path

import pytest

from tests.mistakes.catalogue import MISTAKES
from tests.mistakes.planted import Mistake


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_it_is_found(mistake: Mistake, tmp_path: Path) -> None:
    done = mistake.run(tmp_path)
    assert done.returncode == 1, (
        f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    print(f"{mistake.name}: found by {mistake.found_by}")


@pytest.mark.check
def test_the_catalogue_speaks_of_the_code_as_it_is() -> None:
    faults = {mistake.name: mistake.faults() for mistake in MISTAKES}
    assert not {name: found for name, found in faults.items() if found}
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
