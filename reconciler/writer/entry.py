"""Write to a declared table: open or create it, recover dead writes, then write the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.plans.encode import compute_spec_digest
from reconciler.spec.model import TableSpec
from reconciler.storage.api import StorageRef
from reconciler.transaction.ownership import make_ownership_metadata
from reconciler.transaction.recovery.dead_writes import undo_dead_writes
from reconciler.transaction.session import RunContext
from reconciler.writer.job import RowWriter
from reconciler.writer.request import WriteRequest, WriteResult
from reconciler.writer.run import run_write
from reconciler.writer.stream_batches import has_batch, make_batch_extra
from reconciler.writer.table_opening import open_for_writing

_NOTHING: Final[Mapping[str, str]] = {}


def write_table(  # noqa: PLR0913 (all of them facts about one write)
    spec: TableSpec,
    request: WriteRequest,
    *,
    context: RunContext,
    token: str,
    writer: Callable[[StorageRef], RowWriter] | None,
    batch: tuple[str, int] | None = None,
    extra: Mapping[str, str] = _NOTHING,
) -> WriteResult:
    """Write as requested, completely or not at all.

    ``writer``: None for a write without rows. ``token``: a text that no other run has; ``extra``:
    kept with the instant, beside our signature. ``batch``: of a stream, by its name; a batch that
    the table has is not written again. Raises as ``open_for_writing`` and ``run_write``.
    """
    _check_extra(extra)
    storage = context.open_storage(spec.path, spec.storage_options)
    if batch is not None:
        if has_batch(storage, *batch):
            return WriteResult(status="nothing")
        request = replace(request, is_stream_batch=True)
        extra = {**extra, **make_batch_extra(*batch)}
    hold, announced = open_for_writing(spec, storage, context, token, request)
    undo_dead_writes(hold, context.process)
    return run_write(
        hold,
        spec,
        request,
        None if writer is None else writer(storage.ref),
        extra={**extra, **make_ownership_metadata(compute_spec_digest(spec.document), hold.owner)},
        announced=announced,
    )


def _check_extra(extra: Mapping[str, str]) -> None:
    """Raise UsageError for metadata keys that are reserved."""
    reserved = sorted(key for key in extra if key == "schema" or key.startswith("reconciler."))
    if reserved:
        raise UsageError(f"extra metadata {', '.join(reserved)}: these keys are reserved")
