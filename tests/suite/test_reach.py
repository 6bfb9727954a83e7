"""A change reaches the tests that can break by it, the likeliest first."""

from tests.suite.reach import Reach, of_paths, reach_of


def test_helpers_and_floors_are_followed() -> None:
    reach = reach_of("tests/promises/verify/test_verify.py")
    assert (
        "tests/promises/exact/steps.py" in reach.files | reach_of("tests/promises/exact/test_exact.py").files
    )
    assert {"feed", "wire/log", "model"} <= reach.folders
    assert "demo" not in reach_of("tests/layers/rewind/test_spool.py").folders


def test_a_command_needs_all_of_the_product() -> None:
    assert {"cli", "feed", "sink/delta/tail"} <= reach_of("tests/promises/crash/test_kill.py").folders


def test_the_likeliest_is_first() -> None:
    changed = of_paths(["src/catchment/wire/json/text.py", "tests/world/judge.py", "README.md"])
    assert changed.folders == {"wire/json"}
    assert changed.tests == {"tests/world/judge.py"}
    own = Reach(frozenset(), frozenset(), frozenset({"tests/world/judge.py"}))
    near = Reach(frozenset({"wire/json"}), frozenset({"wire/json"}), frozenset())
    far = Reach(frozenset({"feed"}), frozenset({"feed", "wire/json"}), frozenset())
    none = Reach(frozenset({"page"}), frozenset({"page"}), frozenset())
    assert none.rank(changed) is None
    ranks = [reach.rank(changed) for reach in (own, near, far)]
    assert None not in ranks
    assert ranks == sorted(ranks, key=lambda rank: rank or ())
