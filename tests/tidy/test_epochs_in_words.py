"""One spelling of an epoch: what people read names it as `epoch_text` writes it, and as `read` takes it back."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.floors import MODULES, PACKAGE


def bare_epochs(source: str) -> Iterator[str]:
    """Placeholders of messages and of log lines that follow the word epoch and are not what `epoch_text` gives."""
    for text in ast.walk(ast.parse(source)):
        if isinstance(text, ast.Constant) and "epoch %d" in str(text.value):
            yield f"line {text.lineno}: %d"
        if not isinstance(text, ast.JoinedStr):
            continue
        said = ""
        for part in text.values:
            if isinstance(part, ast.Constant):
                said = str(part.value)
                continue
            assert isinstance(part, ast.FormattedValue)
            shown = ast.unparse(part.value)
            named = said.split()[-1:] in (["epoch"], ["epochs"]) and said.endswith(" ")
            # The screen's own value holds the text (screen/display.py).
            text_of = shown.startswith("epoch_text(") or shown.endswith((".epoch_text", "seen.epoch"))
            if named and not text_of:
                yield f"line {part.lineno}: {shown}"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_message_shows_a_number(module: Path) -> None:
    assert list(bare_epochs(module.read_text())) == []


def test_the_rule_itself() -> None:
    assert list(bare_epochs('f"{a} at epoch {m.epoch}, {n} epochs"')) == ["line 1: m.epoch"]
    assert list(bare_epochs('log("epoch %d", m.epoch)')) == ["line 1: %d"]
    assert list(bare_epochs('f"at epoch {epoch_text(m.epoch)}: {rows}"')) == []
