"""A consumer of Debezium's envelope, as its documentation describes it. It shares no code with the format."""

import json
from typing import Any

_LINE = ["topic", "key", "value"]
_ENVELOPE = ["before", "after", "source", "op", "ts_ms", "transaction"]
_SOURCE: dict[str, tuple[type, ...]] = {
    "version": (str,),
    "connector": (str,),
    "name": (str,),
    "ts_ms": (int,),
    "snapshot": (str,),
    "db": (str,),
    "sequence": (type(None),),
    "table": (str,),
    "server_id": (int,),
    "gtid": (str, type(None)),
    "file": (str,),
    "pos": (int,),
    "row": (int,),
    "thread": (type(None),),
    "query": (type(None),),
}
# Whether each operation has a row before it and one after it.
_SIDES = {
    "c": (False, True),
    "r": (False, True),
    "u": (True, True),
    "d": (True, False),
    "t": (False, False),
}


class Consumer:
    """Keeps the newest row of each topic and key. Raises AssertionError for what is no message of that connector."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.operations = ""
        self.snapshots: list[str] = []
        self.sources: list[dict[str, Any]] = []

    def take(self, line: str) -> None:
        """Apply a line."""
        message = json.loads(line)
        assert list(message) == _LINE
        topic, key, value = message.values()
        kept = self.rows.setdefault(topic, {})
        if value is None:
            assert isinstance(key, dict)
            assert json.dumps(key) not in kept, "a tombstone comes behind the delete of its key"
            self.operations += "-"
            return
        assert list(value) == _ENVELOPE
        self._source(topic, value["source"])
        operation, before, after = value["op"], value["before"], value["after"]
        assert (before is not None, after is not None) == _SIDES[operation]
        assert isinstance(value["ts_ms"], int)
        assert value["transaction"] is None
        self.operations += operation
        if operation == "t":
            assert key is None
            kept.clear()
            return
        assert key == {name: (after or before)[name] for name in key}
        assert before is None or kept[json.dumps(key)] == before
        if after is None:
            del kept[json.dumps(key)]
        else:
            assert before is not None or json.dumps(key) not in kept
            kept[json.dumps(key)] = after
        assert (value["source"]["snapshot"] != "false") == (operation == "r")

    def _source(self, topic: str, source: dict[str, Any]) -> None:
        assert list(source) == list(_SOURCE)
        for name, types in _SOURCE.items():
            assert isinstance(source[name], types), (name, source[name])
        assert topic == f"{source['name']}.{source['db']}.{source['table']}"
        assert source["connector"] == "mysql"
        self.snapshots.append(source["snapshot"])
        self.sources.append(source)
