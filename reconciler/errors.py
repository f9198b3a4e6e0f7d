"""Everything this package raises on purpose, and the exit code of each.

ReconcilerError                    1
├── SpecError                      1   problems in what people wrote, each with file:line:column
├── FormatError                    1   bytes that cannot be what they claim to be; names the file
├── UnsupportedError               1   a table that we know we must not touch
├── RowsError                      1   rows that were handed over to be written and cannot be
├── PlanError                      1   a plan document that is damaged, foreign or of another format
│   └── EditedPlanError            4   one that is no longer what was made and reviewed
├── StorageError                   1   a path that cannot be reached
│   ├── NotFoundError
│   ├── AlreadyExistsError
│   └── PermissionDeniedError
├── BlockedError                   3   a guardrail or the table's own state forbids it
├── StaleError                     4   the world moved since the plan was made
├── PartialError                   5   part of the work was done
├── BusyError                      6   the lock is held or another writer's work is pending
└── UsageError                    64   the command line itself

A message says what is wrong, where, and what to do; it is never a traceback and never a guess.
"""

from __future__ import annotations

from typing import ClassVar


class ReconcilerError(Exception):
    """Base of everything this package raises on purpose."""

    exit_code: ClassVar[int] = 1


class SpecError(ReconcilerError):
    """What people wrote is wrong; the message lists every problem, a line each."""


class FormatError(ReconcilerError):
    """A file of a table is damaged or is not what its name says.

    ``path`` is relative to the table's root; ``remedy`` says what a person can do.
    """

    def __init__(self, path: str, problem: str, remedy: str = "") -> None:
        super().__init__(path, problem, remedy)
        self.path, self.problem, self.remedy = path, problem, remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" + (f"; {self.remedy}" if self.remedy else "")


class NoTableError(FormatError):
    """There is no table: nothing says what one would be."""


class UnsupportedError(ReconcilerError):
    """The table uses something that this tool knows by name and must not touch."""


class RowsError(ReconcilerError):
    """Rows to be written lack what the table asks for; names the column, and a row of them."""


class PlanError(ReconcilerError):
    """A plan document that cannot be used; says what the file is instead."""


class EditedPlanError(PlanError):
    """A plan document that somebody changed after it was made: nobody has reviewed what it says."""

    exit_code: ClassVar[int] = 4


class StorageError(ReconcilerError):
    """A path could not be listed, read, written or deleted."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class NotFoundError(StorageError):
    """Nothing is there."""


class AlreadyExistsError(StorageError):
    """An exclusive creation found the path taken."""


class PermissionDeniedError(StorageError):
    """The store refused the credentials for this path."""


class BlockedError(ReconcilerError):
    """A guardrail, or the state of the table, forbids the work."""

    exit_code: ClassVar[int] = 3


class StaleError(ReconcilerError):
    """The plan is not (any longer) about this table and this spec."""

    exit_code: ClassVar[int] = 4


class PartialError(ReconcilerError):
    """Some of the work was done and some was not; the message says which."""

    exit_code: ClassVar[int] = 5


class BusyError(ReconcilerError):
    """Another process holds the lock or has work pending on the table."""

    exit_code: ClassVar[int] = 6


class UsageError(ReconcilerError):
    """The command line cannot be understood."""

    exit_code: ClassVar[int] = 64
