"""Writes docs/feed-reference.md and docs/serve-reference.md from the models, so that no page can lag behind them."""

from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from catchment.config.feed import Feed
from catchment.config.section import Section
from catchment.config.serving import ServeConfig
from catchment.config.units import unit_of

_HEAD = """# The feed file

One YAML file describes one feed. It is read once, when a command starts, and checked as a whole: every fault
is listed with its line. Durations (`500ms`, `1s`, `10min`, `1h`, `2d`) and sizes (`64KB`, `64MB`, `1GB`, powers
of 1024) always carry their unit. Relative paths are relative to the feed file.

```yaml
name: shop
source:
  keyspace: shop
  shards:
    - {name: "-80", host: db1.example, user: catchment, password: {env: SHOP_PASSWORD}}
    - {name: "80-", host: db2.example, user: catchment, password: {env: SHOP_PASSWORD}}
tables:
  - shop.*
  - "!shop.tmp_*"
sink:
  path: lake
```

| key | value | default | meaning |
| --- | --- | --- | --- |
"""
_SERVE_HEAD = """# The server's file

One YAML file describes one server of [streams](serve.md). It is read once, when `catchment serve` starts, and checked
as a whole: every fault is listed with its line. Sizes (`64MB`, `1GB`) always carry their unit. Relative paths are
relative to the file.

```yaml
address: 0.0.0.0
port: 7447
tls: {certificate: server.pem, key: server.key}
feeds:
  - {file: shop.yaml, tokens: [{env: SHOP_TOKEN}]}
```

| key | value | default | meaning |
| --- | --- | --- | --- |
"""
_FOOT = "\n(This page is written by `python -m catchment.config.reference`.)\n"
_NAMES = {"int": "number", "float": "number", "bool": "true or false", "Path": "path", "dict": "mapping"}


def reference() -> str:
    """The page as Markdown."""
    return _HEAD + "\n".join(_rows(Feed, "")) + "\n" + _FOOT


def serve_reference() -> str:
    """The page of a server's file as Markdown."""
    return _SERVE_HEAD + "\n".join(_rows(ServeConfig, "")) + "\n" + _FOOT


def _rows(section: type[BaseModel], prefix: str) -> list[str]:
    rows = []
    for name, field in section.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        unit = unit_of(field)
        value, inner, suffix = (unit.meaning, None, "") if unit else _value(field.annotation)
        rows.append(f"| `{key}` | {value} | {_default(field)} | {field.description} |")
        if inner is not None:
            rows += _rows(inner, f"{key}{suffix}.")
    return rows


def _value(annotation: Any) -> tuple[str, type[BaseModel] | None, str]:
    """How a value is called, the model inside it, and what its path has between key and inner key."""
    arguments = [a for a in get_args(annotation) if a not in (type(None), Ellipsis)]
    if getattr(annotation, "__origin__", None) is tuple:
        what, inner, _ = _value(arguments[0])
        return f"list of {what if what.endswith('`') else f'{what}s'}", inner, "[]"
    if arguments and getattr(annotation, "__origin__", None) is not dict:
        return _value(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "mapping", annotation, ""
    if hasattr(annotation, "__members__"):
        return ", ".join(f"`{member.value}`" for member in annotation), None, ""
    return _NAMES.get(getattr(annotation, "__origin__", annotation).__name__, "text"), None, ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        written = field.json_schema_extra
        return f"`{written['default']}`" if isinstance(written, dict) else "required"
    default, unit = field.default, unit_of(field)
    if unit is not None and default is not None:
        return f"`{unit.written(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return ", ".join(f"`{getattr(one, 'value', one)}`" for one in default)
    if default is None or isinstance(default, Section | SecretStr | dict):
        return ""
    return f"`{getattr(default, 'value', default)}`"


if __name__ == "__main__":
    Path("docs/feed-reference.md").write_text(reference(), encoding="utf-8")
    Path("docs/serve-reference.md").write_text(serve_reference(), encoding="utf-8")
