"""Check before any rows are read whether the spec or the table forbids a write."""

from __future__ import annotations

import pyarrow as pa

from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import TableSpec
from reconciler.state.current_files import find_newest_bases
from reconciler.state.observe import observe
from reconciler.state.schema import read_declared_schema
from reconciler.storage.api import Storage
from reconciler.writer.facts import check_writable
from reconciler.writer.request import WriteMode
from reconciler.writer.table_opening import check_declaration


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteTarget:
    """The table of a write: ``schema``, None if it does not exist or does not declare its columns.

    ``rewritable_bytes``: of the base files that changes of rows would have to rewrite, all
    together; ``largest``: of the largest.
    """

    schema: pa.Schema | None = None
    rewritable_bytes: int = 0
    largest: int = 0

    def estimate_rewrite(self, rows: int) -> int:
        """Return how many bytes changes of so many rows rewrite at most."""
        return min(self.rewritable_bytes, rows * self.largest)


def check_target(spec: TableSpec, storage: Storage, mode: WriteMode, *, now_ms: int) -> WriteTarget:
    """Return what is known of the table before rows are read.

    Changes nothing. Raises the errors of ``open_for_writing`` and ``read_write_facts`` that do not
    depend on rows.
    """
    properties = check_declaration(spec, storage, mode)
    if properties is None:
        return WriteTarget()
    state = observe(storage, None, observed_ms=now_ms, with_history=False)
    check_writable(storage, properties, state, spec, mode)
    declared = read_declared_schema(storage, properties, state)
    rewrites = mode.operation.needs_lookup and properties.table_type == "COPY_ON_WRITE"
    sizes = state.files.size[find_newest_bases(state.view)] if rewrites else ()
    return WriteTarget(
        schema=None if declared is None else to_arrow_schema(declared.text, declared.path),
        rewritable_bytes=int(sum(sizes)),
        largest=int(max(sizes, default=0)),
    )
