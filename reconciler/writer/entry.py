"""A whole write of a declared table: it is opened or made, what dead runs left goes, rows come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.plan.document import spec_digest
from reconciler.spec.model import TableSpec
from reconciler.storage.api import StorageRef
from reconciler.transaction.hold import Means
from reconciler.transaction.signature import signed
from reconciler.writer.asked import Ask, Outcome
from reconciler.writer.left import undo_dead_writes
from reconciler.writer.opening import open_for_writing
from reconciler.writer.request import Writer
from reconciler.writer.run import run_write
from reconciler.writer.streams import batch_extra, has_batch

_NOTHING: Final[Mapping[str, str]] = {}


def write_table(  # noqa: PLR0913 (all of them facts about one write)
    spec: TableSpec,
    ask: Ask,
    *,
    means: Means,
    token: str,
    writer: Callable[[StorageRef], Writer] | None,
    batch: tuple[str, int] | None = None,
    extra: Mapping[str, str] = _NOTHING,
) -> Outcome:
    """Do what is asked, all of it or nothing.

    ``writer``: None for a write without rows. ``token``: a text that no other run has; ``extra``:
    kept with the instant, beside what says whose it is. Raises as ``open_for_writing`` and
    ``run_write``. ``batch``: of a stream, by its name; one that the table has is not written again.
    """
    _check_extra(extra)
    storage = means.open_storage(spec.path, spec.storage_options)
    if batch is not None:
        if has_batch(storage, *batch):
            return Outcome(how="nothing")
        ask = replace(ask, streams=True)
        extra = {**extra, **batch_extra(*batch)}
    hold, announced = open_for_writing(spec, storage, means, token, ask)
    undo_dead_writes(hold, means.process)
    return run_write(
        hold,
        spec,
        ask,
        None if writer is None else writer(storage.ref),
        extra={**extra, **signed(spec_digest(spec.document), hold.owner)},
        announced=announced,
    )


def _check_extra(extra: Mapping[str, str]) -> None:
    """Raises UsageError for keys that mean something to readers and to us."""
    taken = sorted(key for key in extra if key == "schema" or key.startswith("reconciler."))
    if taken:
        raise UsageError(f"extra metadata {', '.join(taken)}: these keys are not yours to set")
