"""The exceptions of this package with their exit codes, and the problems that spec files have.

ReconcilerError                    1
├── SpecError                      1   problems in spec files, each with file:line:column
├── FormatError                    1   a damaged file of a table; names the file
│   └── NoTableError               1   there is no table at the path
├── UnsupportedError               1   a table with a feature that this tool must not touch
├── RowsError                      1   rows that cannot be written to the table
├── PlanError                      1   a plan document that is damaged or of another format
│   └── EditedPlanError            4   a plan document that was edited after it was made
├── StorageError                   1   a path that cannot be reached
│   ├── NotFoundError
│   ├── AlreadyExistsError
│   ├── ChangedError
│   ├── PermissionDeniedError
│   └── UnreachableError
├── CatalogError                   1   a catalog that cannot be reached or contradicts a table
│   ├── NoCatalogTableError
│   └── CatalogLocationError
├── LockServersError               1   servers that keep a lock do not answer or refuse
├── BlockedError                   3   a guardrail or the table's state forbids the work
├── StaleError                     4   the table or spec changed since the plan was made
├── PartialError                   5   part of the work was done
├── BusyError                      6   the lock is held, or another writer's work is pending
│   ├── VanishedLockError          6   the lock that was held is free, and nobody has it
│   └── VanishingFilesError        6   files vanish at each look; also a StorageError
└── UsageError                    64   a command line that is not valid

A message says what is wrong, where, and what to do now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import ClassVar, Final, Literal, NamedTuple

from reconciler.lazy_dataclass import dataclass

#: the worst exit code of several tables is the first of these that occurs
WORST_FIRST: Final = (1, 6, 3, 5, 4, 2, 0)


class ReconcilerError(Exception):
    """Base class of the exceptions that this package raises on purpose."""

    exit_code: ClassVar[int] = 1


class SpecError(ReconcilerError):
    """A spec file is wrong. The message lists every problem, one per line."""


class FormatError(ReconcilerError):
    """A file of a table is damaged, or its content does not fit its name.

    ``path`` is relative to the table's root; ``remedy`` says what to do.
    """

    def __init__(self, path: str, problem: str, remedy: str = "") -> None:
        super().__init__(path, problem, remedy)
        self.path, self.problem, self.remedy = path, problem, remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" + (f"; {self.remedy}" if self.remedy else "")


class NoTableError(FormatError):
    """There is no Hudi table at the path."""


class UnsupportedError(ReconcilerError):
    """The table uses a feature that this tool knows and must not touch."""


class RowsError(ReconcilerError):
    """Rows cannot be written to the table. The message names the column and one of the rows."""


class PlanError(ReconcilerError):
    """A plan document cannot be used. The message says what the file is instead."""


class EditedPlanError(PlanError):
    """A plan document was edited after it was made, so nobody has reviewed its content."""

    exit_code: ClassVar[int] = 4


class StorageError(ReconcilerError):
    """A path could not be listed, read, written or deleted."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class NotFoundError(StorageError):
    """The path does not exist."""


class AlreadyExistsError(StorageError):
    """The path exists, and the caller asked to create it."""


class ChangedError(StorageError):
    """The file is not the version that the caller asked to replace."""


class PermissionDeniedError(StorageError):
    """The store refused the credentials for this path."""


class UnreachableError(StorageError):
    """The store gave no usable answer, or has no such bucket."""


class CatalogError(ReconcilerError):
    """A catalog could not be reached, refused a request, or contradicts the table."""

    def __init__(self, catalog: str, problem: str) -> None:
        super().__init__(catalog, problem)
        self.catalog, self.problem = catalog, problem

    def __str__(self) -> str:
        return f"{self.catalog}: {self.problem}"


class NoCatalogTableError(CatalogError):
    """The catalog does not have the table."""


class CatalogLocationError(CatalogError):
    """The catalog has the table without a location that can be opened."""


class LockServersError(ReconcilerError):
    """The servers that keep a table's lock do not answer, or refuse a request."""

    def __init__(self, lock: str, problem: str) -> None:
        super().__init__(lock, problem)
        self.lock, self.problem = lock, problem

    def __str__(self) -> str:
        return f"{self.lock}: {self.problem}"


class BlockedError(ReconcilerError):
    """A guardrail or the state of the table forbids the work."""

    exit_code: ClassVar[int] = 3


class StaleError(ReconcilerError):
    """The plan no longer fits the table or the spec."""

    exit_code: ClassVar[int] = 4


class PartialError(ReconcilerError):
    """Part of the work was done. The message says which part."""

    exit_code: ClassVar[int] = 5


class BusyError(ReconcilerError):
    """Another process holds the lock, or has work pending on the table."""

    exit_code: ClassVar[int] = 6


class VanishedLockError(BusyError):
    """This run's lock is gone and nobody has it; it may be taken again before another look."""


class VanishingFilesError(BusyError, StorageError):
    """A listed file was gone at every look at the table; its writers are busy, or it is lost."""


class UsageError(ReconcilerError):
    """The command line is not valid."""

    exit_code: ClassVar[int] = 64


def choose_worst_code(codes: Iterable[int]) -> int:
    """Return the exit code of several tables; 0 if there are none.

    >>> choose_worst_code([0, 4, 5]), choose_worst_code([6, 1]), choose_worst_code([])
    (5, 1, 0)
    """
    return min(codes, key=WORST_FIRST.index, default=0)


class SourcePosition(NamedTuple):
    """A position in a file. Line and column count from 1; line 0 is the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Return ``file:line:column``, which editors and terminals turn into links."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem of a spec file: its position, what is wrong, and what to do about it.

    ``path`` is the dotted path of the field, ``""`` for the document as a whole.

    >>> at = SourcePosition("a.yaml", 3, 5)
    >>> print(Problem(at, "spec.sise", "unknown field", "did you mean 'size'?"))
    a.yaml:3:5: spec.sise: unknown field; did you mean 'size'?
    """

    position: SourcePosition
    path: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        """Return the problem as one line."""
        parts = [str(self.position)]
        if self.severity == "warning":
            parts.append("warning")
        if self.path:
            parts.append(self.path)
        text = ": ".join([*parts, self.message])
        return _escape_line(f"{text}; {self.hint}" if self.hint else text)


@dataclass(slots=True)
class Problems:
    """A growing set of problems. It iterates in the order of files and lines."""

    _found: set[Problem] = field(default_factory=set)

    def error(self, position: SourcePosition, path: str, message: str, hint: str = "") -> None:
        self._found.add(Problem(position, path, message, hint))

    def warning(self, position: SourcePosition, path: str, message: str, hint: str = "") -> None:
        self._found.add(Problem(position, path, message, hint, "warning"))

    def file_error(self, file: object, message: str, hint: str = "") -> None:
        """Add an error about a file or folder as a whole."""
        self.error(SourcePosition(str(file)), "", message, hint)

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
        """Raise SpecError with every error, one per line; do nothing without errors."""
        if errors := self.errors:
            raise SpecError("\n".join(map(str, errors)))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is closest to a misspelt one; None if none is close.

    Differences of case count little.

    >>> did_you_mean("comits", ["commits", "hours"]), did_you_mean("x", ["commits"])
    ('commits', None)
    """
    from difflib import get_close_matches  # noqa: PLC0415 (only mistakes need it)

    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.7)
    return by_lower[close[0]] if close else None


def quote_value(value: object, limit: int = 60) -> str:
    """Return a value for a message: quoted, on one line, cut after ``limit`` characters.

    >>> quote_value("a"), quote_value(3), quote_value("x" * 70, 10)
    ("'a'", '3', "'xxxxxxxxx…")
    """
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _escape_line(text: str) -> str:
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
