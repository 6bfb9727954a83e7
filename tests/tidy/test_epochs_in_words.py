"""One spelling of an epoch: messages show it as `epoch_text` writes it, and `read` takes it back so."""

import ast
from collections.abc import Iterator

from tests.tidy.floors import MODULES
from tests.tidy.sources import PACKAGE, Source


def bare_epochs(module: Source) -> Iterator[str]:
    """Placeholders of messages and of log lines that follow the word epoch and are not what `epoch_text` gives."""
    for text in module.nodes:
        if isinstance(text, ast.Constant) and "epoch %d" in str(text.value):
            yield f"{module.name}:{text.lineno}: %d"
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
                yield f"{module.name}:{part.lineno}: {shown}"


def test_no_message_shows_a_number() -> None:
    found = [place for module in MODULES for place in bare_epochs(module)]
    assert not found, "\n".join(found)


def test_the_rule_of_epochs() -> None:
    planted = """
f"{a} at epoch {m.epoch}, {n} epochs"
log("epoch %d", m.epoch)
f"at epoch {epoch_text(m.epoch)}: {rows}"
"""
    found = list(bare_epochs(Source(PACKAGE / "x.py", planted)))
    assert found == ["src/catchment/x.py:2: m.epoch", "src/catchment/x.py:3: %d"]
