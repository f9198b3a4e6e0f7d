"""What is wrong with what people wrote: collected, sorted, printed by whoever asks. A leaf."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from reconciler.errors import SpecError

Severity = Literal["error", "warning"]


class SourcePosition(NamedTuple):
    """Somewhere in a file; line and column count from 1, and 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """``file:line:column``, as editors and terminals make links of."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to put right: where, what, and what to do about it.

    ``path`` is the dotted field, ``""`` where no field is meant.

    >>> print(Problem(Place("a.yaml", 3, 5), "spec.sise", "unknown field", "did you mean 'size'?"))
    a.yaml:3:5: spec.sise: unknown field; did you mean 'size'?
    """

    position: SourcePosition
    path: str
    message: str
    hint: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        """One line."""
        parts = [str(self.position)]
        if self.severity == "warning":
            parts.append("warning")
        if self.path:
            parts.append(self.path)
        text = ": ".join([*parts, self.message])
        return _one_line(f"{text}; {self.hint}" if self.hint else text)


@dataclass(slots=True)
class Problems:
    """A growing collection without repetitions; iterates in the order of the files' lines."""

    _found: set[Problem] = field(default_factory=set)

    def error(self, position: SourcePosition, path: str, message: str, hint: str = "") -> None:
        self._found.add(Problem(position, path, message, hint))

    def warning(self, position: SourcePosition, path: str, message: str, hint: str = "") -> None:
        self._found.add(Problem(position, path, message, hint, "warning"))

    def extend(self, problems: Iterable[Problem]) -> None:
        self._found.update(problems)

    def __contains__(self, problem: Problem) -> bool:
        return problem in self._found

    def __iter__(self) -> Iterator[Problem]:
        return iter(sorted(self._found))

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self if problem.severity == "warning")

    def raise_errors(self) -> None:
        """SpecError with every error, a line each; nothing when there are only warnings."""
        if errors := self.errors:
            raise SpecError("\n".join(map(str, errors)))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one was meant to be, if one is close; case counts little.

    >>> did_you_mean("comits", ["commits", "hours"]), did_you_mean("x", ["commits"])
    ('commits', None)
    """
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.7)
    return by_lower[close[0]] if close else None


def quote_value(value: object, limit: int = 60) -> str:
    """A value in a message: quoted, on one line, cut when long.

    >>> shown("a"), shown(3), shown("x" * 70, 10)
    ("'a'", '3', "'xxxxxxxxx…")
    """
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
