"""Which errors of a compaction are about one of its files, and which concern the whole table."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler.errors import FormatError, ReconcilerError, StorageError, UnsupportedError
from reconciler.executor.compact.execution import find_input_problem
from reconciler.rewrite.compaction import MISSING

WORK = SimpleNamespace(sizes={"p/a.parquet": 1, "p/.a.log.1": 1})


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (FormatError("p/.a.log.1", "is damaged"), "p/.a.log.1: is damaged"),
        (UnsupportedError("p/.a.log.1: is a partial update"), "p/.a.log.1: is a partial update"),
        (
            ReconcilerError("task 0: reconciler.errors.FormatError: p/a.parquet: is cut off"),
            "p/a.parquet: is cut off",
        ),
        (StorageError("p/a.parquet", f"{MISSING}; plan again"), f"p/a.parquet: {MISSING}; plan"),
        (StorageError("p/a.parquet", "timed out"), None),
        (FormatError("p/other.parquet", "is damaged"), None),
        (ReconcilerError("lost an executor"), None),
        (ValueError("x"), None),
    ],
)
def test_only_errors_of_input_files_leave_the_compaction_pending(error, problem):
    found = find_input_problem(WORK, error)

    assert (problem is None) == (found is None)
    assert problem is None or found.startswith(problem)
