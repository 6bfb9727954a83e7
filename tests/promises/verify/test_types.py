"""A feed carries types that the log shows as something else, in the copy and in what follows it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from tests.promises.exact.steps import run_here
from tests.promises.verify.test_verify import copied, feed_on, verdict_of
from tests.world.engines import Here

COLUMNS = (
    "u UUID, i INET6, j INET4, g POINT, p TEXT COMPRESSED, k VARCHAR(30) CHARACTER SET gbk, b BINARY(16),"
    " d DECIMAL(65,30), v INT AS (CHAR_LENGTH(k)) VIRTUAL"
)
VALUES = "'2001:db8::', '10.0.0.0', POINT(1, 2), REPEAT('é', 200), '中文', x'00', 1.5, DEFAULT"


@pytest.mark.mariadb("UUID, INET4, INET6 and COMPRESSED columns")
@pytest.mark.promise("types that the binlog shows as other types are carried")
def test_types_that_only_the_catalog_knows(
    tmp_path: Path,
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_here(monkeypatch)
    schema = fresh_schema(shard)
    shard.sql(
        f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (u, k))",
        f"INSERT INTO t VALUES ('123e4567-e89b-12d3-a456-426614174000', {VALUES}), (UUID(), {VALUES})",
        database=schema,
    )
    feed = feed_on(tmp_path, {"a": shard}, schema, {"a": shard.port})
    copied(feed)
    shard.sql(
        "UPDATE t SET i = '::ffff:1.2.3.4', k = '文' WHERE u = '123e4567-e89b-12d3-a456-426614174000'",
        f"INSERT INTO t VALUES ('00000000-0000-0000-0000-000000000000', {VALUES})",
        database=schema,
    )
    copied(feed)
    rows = {row["u"]: row for row in read(feed, f"{schema}.t").arrow().to_pylist()}
    assert len(rows) == 3
    first = rows["123e4567-e89b-12d3-a456-426614174000"]
    assert (first["i"], first["j"], first["k"], first["v"]) == ("::ffff:1.2.3.4", "10.0.0.0", "文", 1)
    assert rows["00000000-0000-0000-0000-000000000000"]["p"] == "é" * 200
    verdict = verdict_of(feed, Here())
    assert verdict.differences == 0, verdict.found
