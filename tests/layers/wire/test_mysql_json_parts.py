"""Updates of parts of JSON documents (binlog_row_value_options=PARTIAL_JSON), drawn at random."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.image import OP, SIDE
from tests.layers.wire.documents import KEYS, as_json, document
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.events import events_of, kind_of
from tests.world.servers.launch import PrivateMySQL

PARTIAL_UPDATE = 39


def path(rng: random.Random, value: Any) -> str:
    """A path that may exist in the document, or whose last step may not."""
    text = "$"
    while isinstance(value, dict | list) and (text == "$" or rng.randrange(4)):
        if isinstance(value, dict):
            key = rng.choice([*value, *KEYS])
            text += "." + as_json(key)
            value = value.get(key)
        else:
            index = rng.randrange(len(value) + 2)
            text += f"[{index}]"
            value = value[index] if index < len(value) else None
    return text


def change(rng: random.Random, value: Any) -> tuple[str, list[str]]:
    """An expression of column `j`, and its parameters."""
    steps = [path(rng, value) for _ in range(rng.randrange(1, 4))]
    steps = [step for step in steps if step != "$"] or ["$.a"]
    function = rng.choice(["JSON_SET", "JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
    if function == "JSON_REMOVE":
        return f"JSON_REMOVE(j, {', '.join(['%s'] * len(steps))})", steps
    parameters = []
    for step in steps:
        parameters += [step, as_json(document(rng, 2))]
    return f"{function}(j, {', '.join(['%s, CAST(%s AS JSON)'] * len(steps))})", parameters


def updated(mysql: PrivateMySQL, table: str, seed: int, updates: int) -> int:
    """Random updates; each after image must have the text of SELECT. Returns how many were logged in part."""
    rng = random.Random(seed)
    start = end_of_log(mysql)
    expected = []
    with mysql.connect() as session, session.cursor() as cursor:
        cursor.execute("SET binlog_row_value_options = PARTIAL_JSON")
        for number in range(updates):
            if number % 12 == 0:
                value = {key: document(rng) for key in KEYS} if rng.randrange(3) else [document(rng)] * 5
                cursor.execute(f"REPLACE INTO {table} VALUES (1, %s, NULL)", (as_json(value),))
            expression, parameters = change(rng, value)
            try:
                cursor.execute(f"UPDATE {table} SET n = {number}, j = {expression}", parameters)
            except Exception as refused:
                if "path" not in str(refused).lower():
                    raise
                continue
            cursor.execute(f"SELECT n, j FROM {table}")
            ((n, text),) = cursor.fetchall()
            value = json.loads(text)
            expected.append((n, text))
    raw = read_dump(mysql, start)
    decoder = decoded(raw, start)
    rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
    after = {row["n"]: row["j"] for row in rows if row[SIDE] == 1 and row[OP] == 2}
    for n, text in expected:
        assert after[n] == text, (seed, n)
    return sum(kind_of(event) == PARTIAL_UPDATE for event in events_of(raw))


@pytest.fixture
def table(mysql: PrivateMySQL, fresh_schema: Callable[[PrivateServer], str]) -> str:
    name = f"{fresh_schema(mysql)}.j"
    mysql.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, j json, n int)")
    return name


@pytest.mark.parametrize("updates", [80, pytest.param(600, marks=pytest.mark.wide)])
def test_random_parts(mysql: PrivateMySQL, table: str, updates: int) -> None:
    assert updated(mysql, table, seed=1, updates=updates) > updates // 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 22))
def test_more_random_parts(mysql: PrivateMySQL, table: str, seed: int) -> None:
    assert updated(mysql, table, seed, updates=2000) > 1000
