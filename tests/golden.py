"""What tests expect and files hold: a whole file, or one case of many in a file.

A file of cases has for each a name after ``===``, a text, and after ``>>>`` what is said about it.
"""

from __future__ import annotations

from pathlib import Path


def read_cases(path: Path) -> dict[str, tuple[str, str]]:
    """The text and what is expected of each case, by name."""
    found = {}
    for part in path.read_text(encoding="utf-8").split("=== ")[1:]:
        name, _, rest = part.partition("\n")
        text, _, lines = rest.partition(">>>\n")
        found[name] = (text, lines.strip())
    return found


class Golden:
    """Gives what a file expects; writes what was found there first, where that was asked for."""

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
