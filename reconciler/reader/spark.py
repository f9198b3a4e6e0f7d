"""Make a DataFrame of a scan, by Spark's parquet reader and by Python workers.

Spark's reader reads whole base files that it understands; Python workers read the other slices.
"""

# ruff: noqa: SLF001 (Java's side of a session has no public name)

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Mask, sort_unique, to_arrow
from reconciler.errors import ReconcilerError
from reconciler.index.predicates.functions import find_functions
from reconciler.reader.connect import make_connect_frame
from reconciler.reader.manifest import BATCH, FOLDER, make_manifest, quote_path
from reconciler.reader.model import Scan, find_python_reasons
from reconciler.reader.pruning import PrunedScan, keep_all, prune_by_index, widen_to_scan
from reconciler.reader.session import (
    activate_session,
    check_where,
    derive_partition_condition,
    find_replaced_functions,
    find_unusual_settings,
    read_session_zone,
)
from reconciler.reader.skipping import SkipDecision, parse_condition, uses_time_columns
from reconciler.reader.slice_rows import (
    COMMIT_TIME,
    SliceReadTask,
    check_mergeable,
    group_into_tasks,
    pack_slices,
    weigh_slices,
)
from reconciler.reader.spark_types import is_void, to_spark_schema
from reconciler.reader.sql_text import quote_column as column_name
from reconciler.spark.connect import is_of_connect
from reconciler.spark.failures import JVM_ENDED, explain_error, is_spark_error
from reconciler.spark.java_api import find_manifest_index, map_in_arrow, to_java_column
from reconciler.spark.struct_types import make_struct_type
from reconciler.spark.workers import MERGING_PACKAGES, READING_PACKAGES, set_up_workers
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.locations import names_account
from reconciler.storage.open import list_client_packages
from reconciler.storage.redaction import redact_secrets

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OPTIONS: Final = {
    "recursiveFileLookup": "true",  # partition values come from this package, not from folder names
    "ignoreMissingFiles": "false",  # no row is skipped, whatever the session's settings
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
#: scheme of a store -> the schemes under which Spark may know it, its own name first
_SCHEMES: Final = {"s3": ("s3", "s3a"), "gs": ("gs",)}
#: PySpark writes functions above a megabyte to disk, where no secret may be
_BROADCAST_BYTES: Final = 256 * 1024


def make_data_frame(
    session: SparkSession,
    scan: Scan,
    ref: StorageRef,
    where: str | None = None,
    *,
    index: Storage | None = None,
) -> DataFrame:
    """Return the rows of a scan for which a Spark SQL condition is true, in the scan's columns.

    ``session``: also one of Spark Connect. ``ref``: with which Python workers open the table's
    storage. ``index``: the storage, to skip files by statistics; None: all files of matching
    partitions are read. Raises UsageError for an invalid ``where``, UnsupportedError for slices
    that cannot be merged. Errors on workers are raised by Spark when rows are requested.
    """
    if is_of_connect(session):
        return make_connect_frame(session, scan, ref, where, index)
    return make_pruned_frame(session, prune_scan(session, scan, where, index), ref, where)


def prune_scan(
    session: SparkSession, scan: Scan, where: str | None, index: Storage | None
) -> PrunedScan:
    """Return what a condition, if any, leaves of a scan; as ``prune_by_condition``."""
    with activate_session(session):
        return keep_all(scan) if where is None else prune_by_condition(session, scan, where, index)


def make_pruned_frame(
    session: SparkSession, pruned: PrunedScan, ref: StorageRef, where: str | None
) -> DataFrame:
    """Return the matching rows of a pruned scan; as ``make_data_frame``."""
    scan = pruned.scan
    with activate_session(session):
        if where is None:
            return _make_rows(session, scan, ref)
        names = _find_named_columns(session, scan, where)
        extra = [scan.table_schema.field(name) for name in names if name not in scan.schema.names]
        wide = replace(pruned.kept, schema=pa.schema([*scan.schema, *extra]))
        rows = _make_rows(session, wide, ref).filter(where)
        return rows.select(*map(column_name, scan.schema.names)) if extra else rows


def prune_by_condition(
    session: SparkSession, scan: Scan, where: str, index: Storage | None
) -> PrunedScan:
    """Prune a scan by a condition. ``index``: as in ``make_data_frame``.

    Raises UsageError if ``where`` is no condition on the table's columns.
    """
    with activate_session(session):
        partitions = _find_matching_partitions(session, scan, where)
    partition = scan.get_numbers("partition")
    mask = partitions[partition] if len(partition) else np.zeros(0, np.bool_)
    matching_slices = scan.select_slices(mask)
    if index is None:
        return widen_to_scan(scan, mask, keep_all(matching_slices, SkipDecision.SWITCHED_OFF))
    unusual = find_unusual_settings(session)
    unusual += [
        f"its own {name}()" for name in find_replaced_functions(session, find_functions(where))
    ]
    if unusual:
        problem = f"the session has {unusual[0]}, so only Spark interprets the condition"
        kept = keep_all(matching_slices, SkipDecision.NOT_UNDERSTOOD)
        return widen_to_scan(scan, mask, replace(kept, problems=(problem,)))
    condition = parse_condition(where, zone="")
    if uses_time_columns(scan, condition):
        condition = replace(condition, zone=read_session_zone(session))
    return widen_to_scan(
        scan, mask, prune_by_index(replace(matching_slices, condition=condition), index)
    )


def _find_matching_partitions(session: SparkSession, scan: Scan, where: str) -> Mask:
    """Return a mask of the partitions that may hold a matching row."""
    _find_named_columns(session, scan, where)
    all_partitions = np.ones(len(scan.partitions), np.bool_)
    if not scan.partition_schema.names or not len(scan.partitions):
        return all_partitions
    values = scan.partitions.select(scan.partition_schema.names)
    condition = derive_partition_condition(_make_local_frame(session, values.slice(0, 0)), where)
    if condition is None:
        return all_partitions
    row = "_".join(["row", *values.column_names])  # a name that no column has
    frame = _make_local_frame(session, values.append_column(row, to_arrow(np.arange(len(values)))))
    try:
        kept = [
            row[0] for row in frame.filter(_to_column(condition)).select(column_name(row)).collect()
        ]
    except Exception as error:
        if not is_spark_error(error):
            raise
        return all_partitions  # the comparison fails; Spark reports it when rows are requested
    mask = np.zeros(len(values), np.bool_)
    mask[kept] = True
    return mask


@contextmanager
def translate_spark_errors(ref: StorageRef) -> Iterator[None]:
    """Raise errors of Spark in the block as a ReconcilerError of one line.

    It names the file or the table, and holds no secret of ``ref``.
    """
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # noqa: PLC0415

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise ReconcilerError(JVM_ENDED) from error
    except Exception as error:
        if not is_spark_error(error):
            raise
        message = redact_secrets(explain_error(error), ref.secrets)
        message = (
            message if ".parquet" in message or ".log." in message else f"{ref.location}: {message}"
        )
        raise ReconcilerError(message) from error


def has_file_system(session: SparkSession, location: str) -> bool:
    """True if Spark has a file system for a table's location."""
    return _find_root_uri(session, location) is not None


def _find_named_columns(session: SparkSession, scan: Scan, where: str) -> tuple[str, ...]:
    return check_where(_make_local_frame(session, scan.table_schema.empty_table()), where)


def _make_rows(session: SparkSession, scan: Scan, ref: StorageRef) -> DataFrame:
    check_mergeable(scan)
    root = _find_root_uri(session, scan.location)
    is_direct = find_python_reasons(scan, spark_reaches=root is not None) < 0
    frames = []
    if root is not None and is_direct.any():
        frames.append(_read_with_spark(session, scan.select_slices(is_direct), root))
    if not is_direct.all():
        frames.append(_read_with_python(session, scan.select_slices(~is_direct), ref))
    if not frames:
        return _make_local_frame(session, scan.schema.empty_table())
    return reduce(lambda left, right: left.union(right), frames)


def _find_root_uri(session: SparkSession, location: str) -> str | None:
    """Return the URI under which Spark finds a table; None without a file system for its store.

    Hadoop's client for Azure knows only URLs that name the account.
    """
    scheme, _, rest = location.partition("://")
    if not rest:
        return f"file://{quote_path(location)}"
    if not names_account(location):
        return None
    files = session._jvm.org.apache.hadoop.fs.FileSystem
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    for name in _SCHEMES.get(scheme, (scheme,)):
        try:
            files.getFileSystemClass(name, hadoop)
        except Exception as error:
            if not is_spark_error(error):
                raise
            continue
        return f"{name}://{quote_path(rest)}"
    return None


def _read_with_spark(session: SparkSession, scan: Scan, root: str) -> DataFrame:
    """Read whole base files with Spark's own parquet reader.

    Partition columns come from a literal list, by the partition number that each file carries as
    its modification time. So filters on them skip files (FileSourceStrategy prunes by metadata).
    """
    partition = scan.get_numbers("partition")
    used_partitions = sort_unique(partition)
    base, sizes = (scan.slices.column(name).combine_chunks() for name in ("base", "base_size"))
    files = make_manifest(root, base, sizes, to_arrow(np.searchsorted(used_partitions, partition)))
    frame = _make_manifest_frame(session, _list_stored_columns(scan), files)
    columns = _make_columns(session, scan, frame, used_partitions)
    if scan.commit_times is not None:
        times = ",".join(f"'{time}'" for time in scan.commit_times)
        frame = frame.filter(f"{COMMIT_TIME} IN ({times or 'NULL'})")
    return frame.select(*columns)


def _list_stored_columns(scan: Scan) -> pa.Schema:
    """Return the columns to read from base files, without those that no parquet file can hold."""
    fields = list(scan.schema)
    if scan.commit_times is not None and COMMIT_TIME not in scan.schema.names:
        fields.append(scan.table_schema.field(COMMIT_TIME))
    restored = scan.partition_schema.names
    is_stored = [field.name not in restored and not is_void(field.type) for field in fields]
    return pa.schema([f for f, stored in zip(fields, is_stored, strict=True) if stored])


def _make_manifest_frame(session: SparkSession, schema: pa.Schema, files: bytes) -> DataFrame:
    """Return the files of a manifest as a frame; Spark reads the manifest once.

    Does what DataSource.resolveRelation does, except for two settings of a session: another parquet
    source, and ignoring file logs, which would read no file.
    """
    from pyspark.sql import DataFrame  # noqa: PLC0415 (heavy)

    java = session._jsparkSession
    option = session._jvm.scala.Option
    sources = session._jvm.org.apache.spark.sql.execution
    options = session._jvm.PythonUtils.toScalaMap(dict(_OPTIONS))
    columns = java.parseDataType(json.dumps(to_spark_schema(schema))).asNullable()
    with tempfile.TemporaryDirectory(prefix="reconciler-read-") as folder:
        (Path(folder) / FOLDER).mkdir()
        (Path(folder) / FOLDER / BATCH).write_bytes(files)
        path = session._jvm.org.apache.hadoop.fs.Path(
            session._jvm.java.net.URI(f"file://{quote_path(folder)}")
        )
        make_index = find_manifest_index(session)
        index = make_index(java, path, options, option.apply(columns))
    relation = sources.datasources.HadoopFsRelation(
        index,
        index.partitionSchema(),
        columns,
        option.empty(),
        sources.datasources.parquet.ParquetFileFormat(),
        options,
        java,
    )
    return DataFrame(java.baseRelationToDataFrame(relation), session)


def _make_columns(
    session: SparkSession, scan: Scan, frame: DataFrame, used_partitions: NDArray[Any]
) -> list[Column]:
    """Return the scan's columns: from files, from partitions, or null."""
    from pyspark.sql import Column, functions  # noqa: PLC0415 (heavy)

    restored = scan.partition_schema.names
    values: Column | None = None
    if any(name in restored for name in scan.schema.names):
        modified = Column(frame._jdf.metadataColumn("_metadata"))["file_modification_time"]
        values = functions.get(
            _make_partition_literal(session, scan, used_partitions),
            functions.unix_millis(modified).cast("int"),
        )
    columns = []
    for field in scan.schema:
        if values is not None and field.name in restored:
            column = values[f"v{restored.index(field.name)}"]
        elif field.name in frame.columns:
            column = frame[column_name(field.name)]
        else:
            column = functions.lit(None).cast(
                make_struct_type(to_spark_schema(pa.schema([field])))[0].dataType
            )
        columns.append(column.alias(field.name))
    return columns


def _make_partition_literal(
    session: SparkSession, scan: Scan, used_partitions: NDArray[Any]
) -> Column:
    """Return a literal with the values of the partition columns, a struct per partition."""
    selected = scan.partitions.select(scan.partition_schema.names).take(to_arrow(used_partitions))
    names = [f"v{at}" for at in range(selected.num_columns)]
    structs = pa.StructArray.from_arrays([c.combine_chunks() for c in selected.columns], names)
    ends = to_arrow(np.array([0, len(selected)], np.int32))
    frame = _make_local_frame(
        session, pa.table({"values": pa.ListArray.from_arrays(ends, structs)})
    )
    row = frame._jdf.queryExecution().executedPlan().executeCollect()[0]
    literal = session._jvm.org.apache.spark.sql.catalyst.expressions.Literal
    values = literal(row.getArray(0), frame._jdf.schema().apply(0).dataType())
    return _to_column(to_java_column(session, values))


def _read_with_python(session: SparkSession, scan: Scan, ref: StorageRef) -> DataFrame:
    """Read and merge slices in Python workers, large ones first."""
    context = session.sparkContext
    packages = MERGING_PACKAGES if scan.has_logs.any() else READING_PACKAGES
    set_up_workers(context, (*packages, *list_client_packages(ref.location)))
    tasks = group_into_tasks(weigh_slices(scan.slices), context.defaultParallelism)
    packs: Any = pack_slices(scan, tasks)
    if sum(map(len, packs)) > _BROADCAST_BYTES:
        packs = context.broadcast(packs)
    numbered = session.range(0, len(tasks), 1, len(tasks))
    return _map_in_arrow(
        numbered,
        SliceReadTask.from_scan(scan, ref, packs),
        make_struct_type(to_spark_schema(scan.schema)),
    )


def _map_in_arrow(frame: DataFrame, work: SliceReadTask, schema: Any) -> DataFrame:
    """Do what ``frame.mapInArrow`` does, without importing pandas, which takes a second."""
    from pyspark.rdd import PythonEvalType  # noqa: PLC0415 (heavy)
    from pyspark.sql import DataFrame  # noqa: PLC0415
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415

    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    call = UserDefinedFunction(work, schema, evalType=kind)(*(frame[n] for n in frame.columns))
    return DataFrame(map_in_arrow(frame, call), frame.sparkSession)


def _make_local_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a small Arrow table as a frame, in one step whatever its size and the settings."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 (heavy)

    with tempfile.NamedTemporaryFile(prefix="reconciler-read-") as file:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        python = session._jvm.PythonSQLUtils
        batches = python.readArrowStreamFromFile(file.name)
        schema = json.dumps(to_spark_schema(table.schema))
        return DataFrame(python.toDataFrame(batches, schema, session._jsparkSession), session)


def _to_column(java: Any) -> Column:
    from pyspark.sql import Column  # noqa: PLC0415 (heavy)

    return Column(java)
