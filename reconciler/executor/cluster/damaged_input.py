"""Tell whether a rewrite failed because of a damaged input file of its own; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.errors import FormatError, ReconcilerError
from reconciler.executor.cluster.work import ClusterWork
from reconciler.plans.groups import group_of_slices
from reconciler.transaction.paths import resolve_path

#: how Spark quotes an error of a worker: its class, then what it says, the path first
_QUOTED: Final = f"{FormatError.__name__}: "


def find_damaged_input(work: ClusterWork, error: BaseException) -> str | None:
    """Return what is damaged of the files that a clustering reads; None for any other error.

    Only what our own reading of such a file says counts as damage. A store that fails, a file that
    is gone, or one that was damaged elsewhere may concern other steps too.
    """
    if isinstance(error, FormatError):
        return str(error) if error.path in set(_list_inputs(work)) else None
    if not isinstance(error, ReconcilerError):
        return None
    quoted = str(error).partition(_QUOTED)[2]
    return quoted if any(quoted.startswith(f"{path}: ") for path in _list_inputs(work)) else None


def _list_inputs(work: ClusterWork) -> Iterator[str]:
    """Yield the paths of base and log files below the table."""
    groups = work.groups
    partitions, of = groups.partition.to_pylist(), group_of_slices(groups).tolist()
    slices = zip(groups.base.to_pylist(), groups.logs.to_pylist(), of, strict=True)
    for base, logs, group in slices:
        for name in (*([] if base is None else [base]), *logs):
            yield resolve_path(partitions[group], name)
