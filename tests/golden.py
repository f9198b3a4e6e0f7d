"""Expected results in files: a whole file, or one of many cases in a file.

A file of cases has, for each case, a name after ``===``, an input text, and the expected result
after ``>>>``.
"""

from __future__ import annotations

from pathlib import Path


def read_cases(path: Path) -> dict[str, tuple[str, str]]:
    """Return the text and the expected result of each case by name."""
    found = {}
    for part in path.read_text(encoding="utf-8").split("=== ")[1:]:
        name, _, rest = part.partition("\n")
        text, _, lines = rest.partition(">>>\n")
        found[name] = (text, lines.strip())
    return found


class Golden:
    """Returns expected results; first replaces them with actual ones if ``updates``."""

    def __init__(self, *, updates: bool) -> None:
        self.updates = updates

    def expected(self, path: Path, found: str) -> str:
        if self.updates:
            path.parent.mkdir(exist_ok=True)
            path.write_text(found, encoding="utf-8")
        return path.read_text(encoding="utf-8")

    def expected_case(self, path: Path, name: str, found: str) -> str:
        text, expected = read_cases(path)[name]
        if self.updates:
            whole, head = path.read_text(encoding="utf-8"), f"=== {name}\n{text}>>>\n"
            now = whole.replace(f"{head}{expected}\n", f"{head}{found}\n")
            path.write_text(now, encoding="utf-8")
        return read_cases(path)[name][1]
