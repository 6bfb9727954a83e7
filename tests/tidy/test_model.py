"""The model of the protocol speaks of the code as it is, and finds what it must (docs/model)."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "catchment"
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
    """`feed/applier.py Applier.apply` of every comment that begins with "code:"."""
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


@pytest.mark.parametrize("reference", sorted(references(MODEL.read_text()) | NEEDED))
def test_the_code_has_what_the_model_names(reference: str) -> None:
    file, name = reference.split()
    assert reference in references(MODEL.read_text()), f"the model has no {reference} any more"
    assert name in names((PACKAGE / file).read_text()), (
        f"{file} has no {name} any more: look at the model, too"
    )


def test_the_page_names_what_the_code_has() -> None:
    for file, name in re.findall(r"`([a-z_/]+\.py)` `([\w.]+)`", PAGE.read_text()):
        assert name in names((PACKAGE / file).read_text()), f"{file} {name}"


@pytest.mark.parametrize("macro", sorted(macros(MODEL.read_text())))
def test_every_macro_is_run_and_described(macro: str) -> None:
    assert re.search(rf"\b{macro}\b", RUNNER.read_text())
    assert f"`{macro}`" in PAGE.read_text()


def test_the_rule_itself() -> None:
    assert references("x /* code: a/b.py C.d e */ y\n/* code: f.py g */") == {
        "a/b.py C.d",
        "a/b.py e",
        "f.py g",
    }
    assert names("a = 1\nclass B:\n    def c(self): pass\ndef d(): pass") == {"a", "B", "B.c", "d"}
    assert macros("#ifndef EPOCHS\n#ifdef MISTAKE\n") == {"MISTAKE"}


@pytest.mark.long
def test_the_protocol_holds_and_every_planted_mistake_is_found() -> None:
    done = subprocess.run([RUNNER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All as it should be." in done.stdout
