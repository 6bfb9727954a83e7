"""Tables of many cases: the comparison finds the one that differs, and a table that was copied again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch
from tests.promises.exact.steps import Steps, run_here
from tests.world.planted import plant, with_values

BEGIN = ("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")


def test_what_is_found(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    cases = Cases(steps, {"one": BEGIN, "other": BEGIN})
    cases.begin()
    cases.settle()
    cases.must_be_followed()

    cases.write({"one": "UPDATE t SET n = 3 WHERE id = 1"}, "80-")
    with pytest.raises(AssertionError) as found:
        cases.compare()
    (line,) = str(found.value).splitlines()
    assert line.startswith("one: it has")
    assert "'n': 3" in line
    cases.compare("other")
    cases.write({"other": "ALTER TABLE t ADD COLUMN m INT"})
    with pytest.raises(AssertionError, match="other: the lake has the columns"):
        cases.compare("other")
    steps.run()
    cases.settle()

    cases.write({"other": "ALTER TABLE t ORDER BY id; INSERT INTO t (id) VALUES (9)"})
    steps.run()
    with pytest.raises(AssertionError, match="'other': 'shard -80 at"):
        cases.must_be_followed()
    cases.must_be_followed("other")

    plain = next(Path(str(steps.feed.sink.path)).rglob(f"{steps.schema}/one/_delta_log")).parent
    shape = next(one for one in every_epoch(steps)[-1].manifest.shapes if one.table.name == "one")
    assert plant(plain, shape, with_values("id", 2, "n", 9)) > 0
    with pytest.raises(AssertionError, match=r"one: it has .*'n': 9"):
        cases.compare()
