"""Which lines of the decoders ran in a build that counts (dev/covered).

    python -m tests.layers.wire.covered OBJECTS

Cython says in its C which line of the source each part is of, GCC's gcov how often that part ran. Per module: the lines
of functions that ran, the conditions that were both true and false, and what is missing.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
_MARK: Final = re.compile(r'\s*/\* "(catchment/wire/\w+/\w+\.(?:py|pxd))":(\d+)$')
_LEFT: Final = re.compile(r"\s*(?:}|__pyx_L\w+:;)")  # what stands behind it is of another line, or of none
_IMPORTED: Final = re.compile(r"\S.*__pyx_pymod_exec_\w+\(")
_CONDITION: Final = re.compile(r"\s*(?:if|while) .*:$")  # `elif` may be a switch in C, which asks once
Counts = dict[str, Counter[int]]


def counts(objects: Path) -> Counts:
    """How often each line in a function of each source file ran, by its name (`.../log/rows.py`). Lines of an
    inlined function count wherever it is."""
    found: Counts = {}
    for notes in sorted(objects.rglob("*.gcno")):
        command = ["gcov", "--json-format", "--stdout", str(notes)]
        said = subprocess.run(command, capture_output=True, check=True, text=True, cwd=ROOT).stdout
        code = str(notes.relative_to(objects).with_suffix(".c"))
        ran = Counter[int]()
        for file in json.loads(said)["files"]:
            if file["file"] == code:
                for line in file["lines"]:
                    ran[line["line_number"]] += line["count"]
        add_lines(found, (ROOT / code).read_text().splitlines(), ran)
    return found


def add_lines(found: Counts, code: list[str], ran: Counter[int]) -> None:
    """Add how often the first instruction of each marked part ran."""
    place: tuple[str, int] | None = None
    in_comment = imported = False
    for number, text in enumerate(code, 1):
        mark = _MARK.match(text)
        if mark:
            place, in_comment = (mark[1], int(mark[2])), True
        elif in_comment:
            in_comment = not text.endswith("*/")
        elif _IMPORTED.match(text):
            imported = True
        elif text == "}" or _LEFT.match(text):
            place, imported = None, imported and text != "}"
        elif place is not None and number in ran:
            if not imported:
                found.setdefault(place[0], Counter())[place[1]] += ran[number]
            place = None


def never_false(text: list[str], lines: Counter[int]) -> list[int]:
    """Conditions whose body ran whenever they were asked: they have no other line that would tell."""
    found = []
    for number in lines:
        inside = _indent(text[number - 1])
        body = next((n for n in sorted(lines) if n > number and _indent(text[n - 1]) > inside), None)
        if _CONDITION.match(text[number - 1]) and body is not None and 0 < lines[number] <= lines[body]:
            found.append(number)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def report(found: Counts) -> str:
    said, missing = [], []
    for name in sorted(found):
        lines = found[name]
        if not any(lines.values()):
            said.append(f"{Path(name).name:22} nothing ran")
            continue
        text = (ROOT / "src" / name).read_text().splitlines()
        conditions = [n for n in lines if _CONDITION.match(text[n - 1])]
        always = never_false(text, lines)
        never = [n for n in lines if not lines[n]]
        ran = len(lines) - len(never)
        both = len(conditions) - len(always) - sum(1 for n in conditions if not lines[n])
        share = f"lines {ran:4} of {len(lines):4} ({100 * ran / len(lines):5.1f} %)"
        said.append(f"{Path(name).name:22} {share}, conditions both ways {both:3} of {len(conditions):3}")
        faults = {n: "" for n in never} | {n: "never false: " for n in always}
        missing += [f"{name}:{n}: {faults[n]}{text[n - 1].strip()}" for n in sorted(faults)]
    return "\n".join([*said, "", *missing])


if __name__ == "__main__":
    print(report(counts(Path(sys.argv[1]))))
