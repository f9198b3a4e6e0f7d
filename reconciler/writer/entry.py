"""A whole write of a declared table: it is opened or made, what dead runs left goes, rows come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

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
from reconciler.writer.streams import batch_extra, last_batch

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
    storage = means.open_storage(spec.path, spec.storage_options)
    if batch is not None:
        last = last_batch(storage, batch[0])
        if last is not None and last >= batch[1]:
            return Outcome(how="nothing")
        extra = {**extra, **batch_extra(*batch)}
    hold, announced = open_for_writing(spec, storage, means, token)
    undo_dead_writes(hold, means.process)
    return run_write(
        hold,
        spec,
        ask,
        None if writer is None else writer(storage.ref),
        extra={**signed(spec_digest(spec.document), hold.owner), **extra},
        announced=announced,
    )
