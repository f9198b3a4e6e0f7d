"""The executors of an apply: in this process, or on the workers of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from reconciler.executor.deletion import FileDeleter, LocalDeleter
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.late import LateRewriter
from reconciler.storage.api import Storage, StorageRef

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder
    from reconciler.plans.model import TablePlan
    from reconciler.rewrite.model import Rewriter

#: threads that rewrite at a time, and bytes that all of them together sort in memory
_MOST_THREADS: Final = 8
_SORT_BYTES: Final = 1 << 30
_LEAST_SORT_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExecutors:
    """What deletes and rewrites files and reads footers; ``builder`` None: threads read them."""

    deleter: FileDeleter
    rewriter: Rewriter
    builder: IndexBuilder | None = None


def make_local_executors(
    open_storage: Callable[[StorageRef], Storage],
    *,
    cores: int,
    parallelism: int,
    check_stop: Callable[[], None] = lambda: None,
) -> PlanExecutors:
    """Return executors of this process for ``parallelism`` tables at a time.

    ``check_stop`` ends work between two of its steps by raising.
    """

    def make_rewriter() -> Rewriter:
        from reconciler.rewrite.local import (  # noqa: PLC0415 (slow to import)
            LocalRewriter,
            MemoryLimits,
        )
        from reconciler.rewrite.sorting import SORT_BYTES  # noqa: PLC0415

        threads = max(1, min(_MOST_THREADS, cores) // parallelism)
        most = max(_LEAST_SORT_BYTES, _SORT_BYTES // (2 * threads * parallelism))
        limits = MemoryLimits(sort_bytes=min(SORT_BYTES, most))
        return LocalRewriter(open_storage, limits, threads=threads, check_stop=check_stop)

    deleter = LocalDeleter(open_storage, None, check_stop)
    return PlanExecutors(deleter=deleter, rewriter=LateRewriter(make_rewriter))


def make_session_executors(session: Any, tables: Iterable[TablePlan]) -> PlanExecutors:
    """Return executors that are the workers of a Spark session, after a check that they can work.

    Raises the errors of ``set_up_executors``.
    """
    from reconciler.executor.spark import SparkFileDeleter  # noqa: PLC0415 (slow to import)
    from reconciler.executor.workers import set_up_executors  # noqa: PLC0415
    from reconciler.index.spark import SparkIndexBuilder  # noqa: PLC0415
    from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415

    set_up_executors(session, tables)
    return PlanExecutors(
        deleter=SparkFileDeleter(session),
        rewriter=SparkRewriter(session),
        builder=SparkIndexBuilder(session),
    )
