"""Every committed epoch is exact while DDL, both followed and not, meets random transactions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.promises.exact.conftest import Servers
from tests.promises.exact.trial import SHARES, Alter, Trial

# Behind how many epochs each shard runs a statement. No name is taken and given again between two rests, which come at
# every eighth epoch: the feed would have to tell one shard's new column from another's old one.
_ALTERS = (
    (3, 4, "orders ADD COLUMN extra INT DEFAULT 7"),
    (7, 6, "items MODIFY quantity BIGINT NOT NULL, MODIFY price DECIMAL(14,5)"),
    (12, 11, "orders RENAME COLUMN extra TO extra1"),
    (
        13,
        14,
        "items ADD COLUMN mark VARCHAR(10) NOT NULL DEFAULT 'new', ADD COLUMN rate DECIMAL(6,2) DEFAULT 1.50",
    ),
    (
        15,
        17,
        "people ADD COLUMN seen TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, ADD COLUMN late INT DEFAULT 5",
    ),
    (19, 20, "orders CHANGE extra1 extra2 BIGINT"),
    (22, 21, "people MODIFY city VARCHAR(90), CHANGE balance balance DECIMAL(16,3) NOT NULL"),
    (25, 26, "people DROP COLUMN late"),
    (28, 27, "orders RENAME COLUMN extra2 TO extra3, ADD COLUMN mark VARCHAR(9) NOT NULL DEFAULT 'new'"),
    (
        30,
        31,
        "orders MODIFY status SMALLINT UNSIGNED NOT NULL, MODIFY note LONGTEXT, MODIFY discount DECIMAL(7,5)",
    ),
    (35, 33, "people ADD COLUMN late BIGINT DEFAULT -3"),
    (34, 36, "orders RENAME COLUMN extra3 TO extra2, RENAME COLUMN mark TO marked"),
    (38, 37, "orders MODIFY status BIGINT UNSIGNED NOT NULL FIRST"),
    (37, 39, "items MODIFY price DECIMAL(20,5) NULL, MODIFY label CHAR(20)"),
)
_TRUNCATES = (
    *(Alter(2, "-80", "TRUNCATE orders"), Alter(5, "80-", "TRUNCATE TABLE people")),
    *(Alter(9, "80-", "TRUNCATE items"), Alter(10, "-80", "TRUNCATE items")),
    *(Alter(19, "-80", "TRUNCATE TABLE orders"), Alter(20, "-80", "TRUNCATE TABLE orders")),
    *(Alter(23, "-80", "TRUNCATE TABLE people"), Alter(29, "80-", "TRUNCATE TABLE orders")),
    Alter(30, "80-", "TRUNCATE items"),
)


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_tables_are_altered(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    schema = fresh_schema(*servers.values())
    trial = Trial(servers, schema, tmp_path, seed=43, chunk_rows=6, engine="local")
    trial.fill("orders", "extra2")
    alters = [
        *_TRUNCATES,
        *(
            Alter(epochs, shard, f"ALTER TABLE {action}")
            for first, second, action in _ALTERS
            for shard, epochs in zip(servers, (first, second), strict=True)
        ),
    ]
    verdict = trial.run(epochs=40, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 40
    assert verdict.stale == 0
    assert verdict.copying > 3
    assert verdict.plain > 10
    assert verdict.told > 10


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_tables_are_copied_again(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    schema = fresh_schema(*servers.values())
    trial = Trial(servers, schema, tmp_path, seed=41, chunk_rows=40, engine="local")
    wider = "ALTER TABLE orders MODIFY status SMALLINT UNSIGNED NOT NULL CHECK (status < 60000)"
    longer = "ALTER TABLE items MODIFY quantity BIGINT NOT NULL, MODIFY price DECIMAL(14,3) CHECK (price < 10000000)"
    alters = [
        Alter(4, "-80", "ALTER TABLE items ORDER BY quantity"),
        Alter(8, "80-", wider),
        Alter(9, "-80", wider),
        Alter(14, "80-", "ALTER TABLE people COLLATE utf8mb4_bin"),
        Alter(18, "-80", longer),
        Alter(22, "80-", longer),
        Alter(26, "-80", "ALTER TABLE orders ORDER BY status"),
    ]
    verdict = trial.run(epochs=40, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 40
    assert verdict.stale > 10
    assert verdict.renewed >= 3
    assert verdict.plain > 10
    assert verdict.told > 10
