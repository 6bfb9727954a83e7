"""The model of the protocol speaks of the code as it is, and finds what it must (docs/model)."""

import ast
import re
import subprocess

import pytest

from tests.tidy.sources import PACKAGE, ROOT

MODEL = ROOT / "docs" / "model" / "commit.pml"
PAGE = ROOT / "docs" / "model" / "README.md"
RUNNER = ROOT / "dev" / "model"

# What the model cannot do without: no reference to one of these may be lost with a change of the model.
NEEDED = {
    "feed/applier.py Applier.apply",
    "feed/loop.py Loop.run",
    "feed/take_up.py take_up",
    "feed/settle.py settle",
    "feed/settle.py take_over",
    "sink/delta/tail/apply.py DeltaSink.apply",
    "sink/delta/tail/apply.py DeltaSink.take_over",
    "sink/delta/log/fence.py must_lead",
    "sink/delta/epochs/table.py EpochsTable.append",
    "sink/delta/upkeep/restore.py restore",
    "state/lease.py hold",
    "state/resume.py decide",
    "state/store.py Store.put_commit",
    "state/store.py Store.put_manifest",
    "state/store.py Store.put_plan",
    "state/store.py Store.take_up",
}


def references(text: str) -> set[str]:
    """`feed/applier.py Applier.apply` from every comment that begins with "code:"."""
    found = set()
    for comment in re.findall(r"/\* code: (.*?) \*/", text):
        file, *names = comment.split()
        assert names, f"{comment}: no name"
        found |= {f"{file} {name}" for name in names}
    return found


def names(source: str) -> set[str]:
    """What a module defines: functions, classes with their methods, and names given a value."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            inner = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            found |= {node.name, *(f"{node.name}.{name}" for name in inner)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def macros(text: str) -> set[str]:
    """The planted mistakes and the cures: what the model asks for with #ifdef, apart from its bounds and its world."""
    return set(re.findall(r"#ifn?def (\w+)", text)) - {"EPOCHS", "STARTS", "REPLACEMENTS", "RUNNERS"}


def unknown(named: set[str]) -> list[str]:
    """Those of the names, each with its file, that the code does not have."""
    return sorted(
        f"{file} has no {name}"
        for file, name in (reference.split() for reference in named)
        if not (PACKAGE / file).exists() or name not in names((PACKAGE / file).read_text())
    )


def test_the_code_has_what_the_model_and_its_page_name() -> None:
    model = references(MODEL.read_text())
    assert sorted(NEEDED - model) == [], "the model names these no longer"
    page = {" ".join(found) for found in re.findall(r"`([a-z_/]+\.py)` `([\w.]+)`", PAGE.read_text())}
    assert page, "the page names nothing"
    found = unknown(model | page)
    assert not found, "\n".join(["look at the model, too:", *found])


def test_every_macro_is_run_and_described() -> None:
    runner, page = RUNNER.read_text(), PAGE.read_text()
    found = macros(MODEL.read_text())
    assert [macro for macro in found if not re.search(rf"\b{macro}\b", runner)] == []
    assert [macro for macro in found if f"`{macro}`" not in page] == []


def test_the_rule_of_the_model() -> None:
    assert references("x /* code: a/b.py C.d e */ y\n/* code: f.py g */") == {
        "a/b.py C.d",
        "a/b.py e",
        "f.py g",
    }
    assert names("a = 1\nclass B:\n    def c(self): pass\ndef d(): pass") == {"a", "B", "B.c", "d"}
    assert unknown({"feed/loop.py Loop.run", "feed/loop.py Loop.ran", "feed/none.py f"}) == [
        "feed/loop.py has no Loop.ran",
        "feed/none.py has no f",
    ]
    assert macros("#ifndef EPOCHS\n#ifdef MISTAKE\n") == {"MISTAKE"}


@pytest.mark.long
def test_the_protocol_holds_and_every_planted_mistake_is_found() -> None:
    done = subprocess.run([RUNNER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All as it should be." in done.stdout
