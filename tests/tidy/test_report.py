"""The report sees what it is to see (tests/tidy/report.py)."""

from tests.tidy.report import long_files, long_functions, many_parameters, words
from tests.tidy.sources import ROOT, Source


def test_the_report_finds_what_is_planted() -> None:
    body = "    x = 1\n"
    text = (
        f"def short(self, {', '.join('abcdefgh')}) -> None:\n{body * 59}"
        f"def long(self, {', '.join('abcdefgh')}, *, i) -> None:\n{body * 60}"
    )
    small = Source(ROOT / "src" / "x.py", text)
    large = Source(ROOT / "src" / "y.py", text + "\n" * (401 - len(text.splitlines())))
    assert list(long_files([small, large])) == ["src/y.py: 401"]
    assert list(long_functions([small])) == ["src/x.py:61: long 61"]
    assert list(many_parameters([small])) == ["src/x.py:61: long 9"]
    assert list(words({"a": "Whoever goes anew.", "b": "anew, renewed"})) == [
        r"\banew\b (again): 2; a 1, b 1",
        r"\bwhoever\b (anyone who): 1; a 1",
    ]
