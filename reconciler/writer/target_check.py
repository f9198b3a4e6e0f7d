"""Check before any rows are read whether the spec or the table forbids a write."""

from __future__ import annotations

import pyarrow as pa

from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.spec.model import TableSpec
from reconciler.state.observe import observe
from reconciler.state.schema import read_declared_schema
from reconciler.storage.api import Storage
from reconciler.writer.facts import check_writable
from reconciler.writer.request import WriteMode
from reconciler.writer.table_opening import check_declaration


def check_target(
    spec: TableSpec, storage: Storage, mode: WriteMode, *, now_ms: int
) -> pa.Schema | None:
    """Return the columns of the table; None if it does not exist or does not declare them.

    Changes nothing. Raises the errors of ``open_for_writing`` and ``read_write_facts`` that do not
    depend on rows.
    """
    properties = check_declaration(spec, storage, mode)
    if properties is None:
        return None
    state = observe(storage, None, observed_ms=now_ms, with_history=False)
    check_writable(storage, properties, state, spec, mode)
    declared = read_declared_schema(storage, properties, state)
    return None if declared is None else to_arrow_schema(declared.text, declared.path)
