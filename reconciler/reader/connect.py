"""Make a DataFrame of a scan through Spark Connect, which has DataFrames and SQL but no Java.

Python workers of the server read all slices. Without Java's parser, partitions and files are
skipped by our own understanding of a condition; what it does not understand is read, and filtered
by the server. Settings and functions of the session that may change a condition's meaning switch
skipping off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import UsageError
from reconciler.index.predicates.functions import find_functions
from reconciler.reader.model import Scan
from reconciler.reader.pruning import PrunedScan, keep_unsure, prune_cautiously
from reconciler.reader.skipping import (
    find_unusual_keys,
)
from reconciler.reader.slice_rows import (
    SliceReadTask,
    check_mergeable,
    group_into_tasks,
    pack_slices,
    weigh_slices,
)
from reconciler.reader.spark_types import to_spark_schema
from reconciler.reader.sql_text import quote_column
from reconciler.spark.connect_workers import set_up_connect_workers
from reconciler.spark.failures import is_spark_error, read_condition_message
from reconciler.spark.struct_types import make_struct_type
from reconciler.spark.workers import MERGING_PACKAGES, READING_PACKAGES
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.open import list_client_packages

#: a client does not know the cores of the cluster, so there is work for so many
_SLOTS: Final = 32
_PACKS: Final = "pack binary, number int"
#: Java package of Spark's own functions
_SPARK_CLASS: Final = "Class: org.apache.spark.sql.catalyst.expressions."


def make_connect_frame(
    session: Any, scan: Scan, ref: StorageRef, where: str | None, index: Storage | None
) -> Any:
    """Return the rows of a scan for which a condition is true; as ``make_data_frame`` of Spark."""
    if where is None:
        return _read_rows(session, scan, ref)
    _check_where(session, scan, where)
    kept = prune_for_connect(session, scan, where, index).kept
    extra = [scan.table_schema.field(name) for name in _list_extra_columns(scan, where)]
    wide = replace(kept, schema=pa.schema([*scan.schema, *extra]))
    rows = _read_rows(session, wide, ref).filter(where)
    return rows.select(*map(quote_column, scan.schema.names)) if extra else rows


def prune_for_connect(session: Any, scan: Scan, where: str, index: Storage | None) -> PrunedScan:
    """Prune a scan by what is certain of a condition, in the session that will filter its rows."""
    if problem := _find_doubt(session, where):
        return keep_unsure(scan, problem)
    # the server analyses the frame when rows are requested, and its zone may be another one then
    return prune_cautiously(scan, where, index)


def _check_where(session: Any, scan: Scan, where: str) -> None:
    """Let the server analyse a condition; raise UsageError if it is none on the table's columns."""
    empty = session.createDataFrame([], make_struct_type(to_spark_schema(scan.table_schema)))
    try:
        empty.filter(where).schema  # noqa: B018 (asks the server)
    except Exception as error:
        if (message := read_condition_message(error)) is None:
            raise
        raise UsageError(f"where {where!r}: {message}") from None


def _list_extra_columns(scan: Scan, where: str) -> Sequence[str]:
    """Return the columns beside the scan's that a condition may name.

    Whatever names a column holds its name, or a star for all of them.
    """
    text = where.lower()
    unwanted = [name for name in scan.table_schema.names if name not in scan.schema.names]
    if "*" in text:
        return unwanted
    return [name for name in unwanted if not name.isascii() or _quote(name) in text]


def _quote(name: str) -> str:
    """Return a name as any text that names it holds it, in lower case."""
    return name.lower().replace("`", "``")


def _find_doubt(session: Any, where: str) -> str | None:
    """Return why only the server may interpret a condition; None if we may, too."""
    try:
        settings = [row["key"] for row in session.sql("SET").collect()]
        if unusual := find_unusual_keys(sorted(settings)):
            return f"the session sets {unusual[0]}, so only Spark interprets the condition"
        for name in find_functions(where):
            if not _is_spark_function(session, name):
                return f"the session has its own {name}(), so only Spark interprets the condition"
    except Exception as error:
        if not is_spark_error(error):
            raise
        return "the server does not show its settings, so only Spark interprets the condition"
    return None


def _is_spark_function(session: Any, name: str) -> bool:
    lines = [str(row[0]) for row in session.sql(f"DESCRIBE FUNCTION `{name}`").collect()]
    return any(line.startswith(_SPARK_CLASS) for line in lines)


def _read_rows(session: Any, scan: Scan, ref: StorageRef) -> Any:
    """Read and merge slices in Python workers of the server, large ones first."""
    check_mergeable(scan)
    kind = make_struct_type(to_spark_schema(scan.schema))
    tasks = group_into_tasks(weigh_slices(scan.slices), _SLOTS)
    if not tasks:
        return session.createDataFrame([], kind)
    packages = MERGING_PACKAGES if scan.has_logs.any() else READING_PACKAGES
    set_up_connect_workers(session, (*packages, *list_client_packages(ref.location)))
    rows = [(bytearray(pack), number) for number, pack in enumerate(pack_slices(scan, tasks))]
    packs = session.createDataFrame(rows, _PACKS)
    if len(rows) > 1:
        packs = packs.repartitionByRange(len(rows), "number")
    task = SliceReadTask.from_scan(scan, ref, packs=None)
    return packs.mapInArrow(task, kind)
