"""Print the table of planted mistakes: `python -m tests.mistakes`."""

from tests.mistakes.catalogue import MISTAKES

if __name__ == "__main__":
    print("| planted mistake | in | found by |\n| --- | --- | --- |")
    for mistake in MISTAKES:
        print(f"| {mistake.name} | `{mistake.file}` | `{mistake.found_by}` |")
