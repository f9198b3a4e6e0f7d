"""A scan as a DataFrame: whole base files by Spark's parquet reader, the rest by Python workers."""

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

from reconciler.arrays import sort_unique, to_integer_array, to_numpy_numbers
from reconciler.errors import ReconcilerError
from reconciler.index.predicates.functions import find_functions
from reconciler.reader.manifest import BATCH, FOLDER, make_manifest, quote_path
from reconciler.reader.model import Scan
from reconciler.reader.pruning import PrunedScan, keep_all, prune_by_index, widen_to_scan
from reconciler.reader.session import (
    activate_session,
    find_replaced_functions,
    find_unusual_settings,
    read_session_zone,
)
from reconciler.reader.skipping import SkipDecision, parse_condition, uses_time_columns
from reconciler.reader.slice_readers import find_python_reasons, select_slices
from reconciler.reader.slice_rows import COMMIT_TIME, check_mergeable
from reconciler.reader.spark_types import is_void, to_spark_schema
from reconciler.reader.sql_text import quote_column as column_name
from reconciler.reader.where import check_where, derive_partition_condition, is_spark_error
from reconciler.reader.worker import SliceReadTask, group_into_tasks, pack_slices, weigh_slices
from reconciler.spark.failures import JVM_ENDED, explain_failure
from reconciler.spark.jobs import ship_package
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.redaction import redact_secrets

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame, SparkSession

_OPTIONS: Final = {
    "recursiveFileLookup": "true",  # folders say nothing to Spark: their values are ours
    "ignoreMissingFiles": "false",  # whatever the session says, no row is left out
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
#: the names that Spark may know a store by; ours is the first
_SCHEMES: Final = {"s3": ("s3", "s3a"), "gs": ("gs",)}
#: PySpark writes a function of a megabyte to a disk, where no secret may be
_BIG: Final = 256 * 1024


def make_data_frame(
    session: SparkSession,
    scan: Scan,
    ref: StorageRef,
    where: str | None = None,
    *,
    index: Storage | None = None,
) -> DataFrame:
    """The rows of a scan for which a condition of Spark SQL is true, in the scan's columns.

    ``ref``: how Python workers open the table's storage. ``index``: the storage, for statistics of
    files to be asked which of them may match; None: all of the partitions' are read.
    Raises UsageError for a ``where`` that is none, UnsupportedError for slices that must not be
    merged. What goes wrong on a worker is Spark's to raise, when the frame is asked for rows.
    """
    return make_pruned_frame(session, prune_scan(session, scan, where, index), ref, where)


def prune_scan(
    session: SparkSession, scan: Scan, where: str | None, index: Storage | None
) -> PrunedScan:
    """What a condition, if there is any, leaves of a scan; as ``prune_by_condition``."""
    with activate_session(session):
        return keep_all(scan) if where is None else prune_by_condition(session, scan, where, index)


def make_pruned_frame(
    session: SparkSession, found: PrunedScan, ref: StorageRef, where: str | None
) -> DataFrame:
    """The rows of what ``where`` leaves of a scan for which it is true; as ``make_data_frame``."""
    scan = found.scan
    with activate_session(session):
        if where is None:
            return _make_rows(session, scan, ref)
        names = _find_named_columns(session, scan, where)
        more = [scan.table_schema.field(name) for name in names if name not in scan.schema.names]
        wide = replace(found.kept, schema=pa.schema([*scan.schema, *more]))
        rows = _make_rows(session, wide, ref).filter(where)
        return rows.select(*map(column_name, scan.schema.names)) if more else rows


def prune_by_condition(
    session: SparkSession, scan: Scan, where: str, index: Storage | None
) -> PrunedScan:
    """What a condition leaves of a scan. ``index``: as of ``make_data_frame``.

    Raises UsageError for a ``where`` that is no condition on the table's columns.
    """
    partitions = _find_matching_partitions(session, scan, where)
    number = to_numpy_numbers(scan.slices.column("partition").combine_chunks())
    mask = partitions[number] if len(number) else np.zeros(0, np.bool_)
    kept = select_slices(scan, mask)
    if index is None:
        return widen_to_scan(scan, mask, keep_all(kept, SkipDecision.SWITCHED_OFF))
    odd = find_unusual_settings(session)
    odd += [f"its own {name}()" for name in find_replaced_functions(session, find_functions(where))]
    if odd:
        said = f"the session has {odd[0]}, so what the condition means is left to Spark"
        found = replace(keep_all(kept, SkipDecision.NOT_UNDERSTOOD), problems=(said,))
        return widen_to_scan(scan, mask, found)
    condition = parse_condition(where, zone="")
    if uses_time_columns(scan, condition):
        condition = replace(condition, zone=read_session_zone(session))
    return widen_to_scan(scan, mask, prune_by_index(replace(kept, condition=condition), index))


def select_matching_partitions(session: SparkSession, scan: Scan, where: str) -> Scan:
    """The scan of those partitions that may hold a row for which the condition is true.

    Raises UsageError for a ``where`` that is no condition on the table's columns.
    """
    return scan.select_partitions(_find_matching_partitions(session, scan, where))


def _find_matching_partitions(session: SparkSession, scan: Scan, where: str) -> NDArray[np.bool_]:
    """Per partition whether it may hold a row for which the condition is true."""
    with activate_session(session):
        return _evaluate_on_partitions(session, scan, where)


def _evaluate_on_partitions(session: SparkSession, scan: Scan, where: str) -> NDArray[np.bool_]:
    _find_named_columns(session, scan, where)
    every = np.ones(len(scan.partitions), np.bool_)
    if not scan.partition_schema.names or not len(scan.partitions):
        return every
    values = scan.partitions.select(scan.partition_schema.names)
    condition = derive_partition_condition(_make_local_frame(session, values.slice(0, 0)), where)
    if condition is None:
        return every
    row = "_".join(["row", *values.column_names])  # a name that none of them has
    frame = _make_local_frame(
        session, values.append_column(row, to_integer_array(np.arange(len(values))))
    )
    try:
        kept = [
            row[0] for row in frame.filter(_to_column(condition)).select(column_name(row)).collect()
        ]
    except Exception as error:
        if not is_spark_error(error):
            raise
        return every  # a comparison that fails: Spark tells whoever asks for the rows
    mask = np.zeros(len(values), np.bool_)
    mask[kept] = True
    return mask


@contextmanager
def translate_spark_errors(ref: StorageRef) -> Iterator[None]:
    """While the block asks for rows of a table, an error of Spark is a ReconcilerError of a line.

    It names the file or the table and repeats no secret of ``ref``.
    """
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # noqa: PLC0415

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise ReconcilerError(JVM_ENDED) from error
    except Exception as error:
        if not is_spark_error(error):
            raise
        said = redact_secrets(explain_failure(str(error)), ref.secrets)
        said = said if ".parquet" in said or ".log." in said else f"{ref.location}: {said}"
        raise ReconcilerError(said) from error


def has_file_system(session: SparkSession, location: str) -> bool:
    """Whether Spark has a file system for a table's location."""
    return _find_root_uri(session, location) is not None


def _find_named_columns(session: SparkSession, scan: Scan, where: str) -> tuple[str, ...]:
    return check_where(_make_local_frame(session, scan.table_schema.empty_table()), where)


def _make_rows(session: SparkSession, scan: Scan, ref: StorageRef) -> DataFrame:
    check_mergeable(scan)
    root = _find_root_uri(session, scan.location)
    is_direct = find_python_reasons(scan, spark_reaches=root is not None) < 0
    frames = []
    if root is not None and is_direct.any():
        frames.append(_read_with_spark(session, select_slices(scan, is_direct), root))
    if not is_direct.all():
        frames.append(_read_with_python(session, select_slices(scan, ~is_direct), ref))
    if not frames:
        return _make_local_frame(session, scan.schema.empty_table())
    return reduce(lambda one, other: one.union(other), frames)


def _find_root_uri(session: SparkSession, location: str) -> str | None:
    """The URI by which Spark finds a table; None where it has no file system for its store."""
    scheme, _, rest = location.partition("://")
    if not rest:
        return f"file://{quote_path(location)}"
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
    """Whole base files, as Spark's own parquet reader reads them.

    Partition columns come from a list of their values, by the number that every file carries as its
    modification time; so filters on them spare files (FileSourceStrategy prunes by metadata).
    """
    number = to_numpy_numbers(scan.slices.column("partition").combine_chunks())
    used = sort_unique(number)
    base, sizes = (scan.slices.column(name).combine_chunks() for name in ("base", "base_size"))
    files = make_manifest(root, base, sizes, to_integer_array(np.searchsorted(used, number)))
    frame = _make_manifest_frame(session, _list_stored_columns(scan), files)
    columns = _make_columns(session, scan, frame, used)
    if scan.commit_times is not None:
        times = ",".join(f"'{time}'" for time in scan.commit_times)
        frame = frame.filter(f"{COMMIT_TIME} IN ({times or 'NULL'})")
    return frame.select(*columns)


def _list_stored_columns(scan: Scan) -> pa.Schema:
    """What is read of base files: at least one column, and no column that no parquet file has."""
    fields = list(scan.schema)
    if scan.commit_times is not None and COMMIT_TIME not in scan.schema.names:
        fields.append(scan.table_schema.field(COMMIT_TIME))
    restored = scan.partition_schema.names
    is_stored = [field.name not in restored and not is_void(field.type) for field in fields]
    return pa.schema([f for f, stored in zip(fields, is_stored, strict=True) if stored])


def _make_manifest_frame(session: SparkSession, schema: pa.Schema, files: bytes) -> DataFrame:
    """The files of a manifest as Spark sees them; it forgets the manifest at once.

    As DataSource.resolveRelation puts it together, but for what a session can set: another parquet
    source, or that logs of files are passed over, which would read none.
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
        index = sources.streaming.MetadataLogFileIndex(java, path, options, option.apply(columns))
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
    session: SparkSession, scan: Scan, frame: DataFrame, used: NDArray[Any]
) -> list[Column]:
    """The scan's columns: of the files, of the files' partitions, or null."""
    from pyspark.sql import Column, functions  # noqa: PLC0415 (heavy)

    restored = scan.partition_schema.names
    values: Column | None = None
    if any(name in restored for name in scan.schema.names):
        modified = Column(frame._jdf.metadataColumn("_metadata"))["file_modification_time"]
        values = functions.get(
            _make_partition_literal(session, scan, used),
            functions.unix_millis(modified).cast("int"),
        )
    columns = []
    for field in scan.schema:
        if values is not None and field.name in restored:
            column = values[f"v{restored.index(field.name)}"]
        elif field.name in frame.columns:
            column = frame[column_name(field.name)]
        else:
            column = functions.lit(None).cast(_to_struct_type(pa.schema([field]))[0].dataType)
        columns.append(column.alias(field.name))
    return columns


def _make_partition_literal(session: SparkSession, scan: Scan, used: NDArray[Any]) -> Column:
    """A literal: the values of the partition columns, a struct for each of some partitions."""
    taken = scan.partitions.select(scan.partition_schema.names).take(to_integer_array(used))
    names = [f"v{at}" for at in range(taken.num_columns)]
    structs = pa.StructArray.from_arrays([c.combine_chunks() for c in taken.columns], names)
    ends = to_integer_array(np.array([0, len(taken)], np.int32))
    frame = _make_local_frame(
        session, pa.table({"values": pa.ListArray.from_arrays(ends, structs)})
    )
    row = frame._jdf.queryExecution().executedPlan().executeCollect()[0]
    literal = session._jvm.org.apache.spark.sql.catalyst.expressions.Literal
    return _to_column(
        session._jvm.org.apache.spark.sql.Column(
            literal(row.getArray(0), frame._jdf.schema().apply(0).dataType())
        )
    )


def _read_with_python(session: SparkSession, scan: Scan, ref: StorageRef) -> DataFrame:
    """Slices as Python workers read and merge them, big ones first."""
    context = session.sparkContext
    ship_package(context)
    tasks = group_into_tasks(weigh_slices(scan.slices), context.defaultParallelism)
    packs: Any = pack_slices(scan, tasks)
    if sum(map(len, packs)) > _BIG:
        packs = context.broadcast(packs)
    numbered = session.range(0, len(tasks), 1, len(tasks))
    return _map_in_arrow(
        numbered, SliceReadTask.from_scan(scan, ref, packs), _to_struct_type(scan.schema)
    )


def _map_in_arrow(frame: DataFrame, work: SliceReadTask, schema: Any) -> DataFrame:
    """As ``frame.mapInArrow``, which imports pandas (a second) to look at its version."""
    from pyspark.rdd import PythonEvalType  # noqa: PLC0415 (heavy)
    from pyspark.sql import DataFrame  # noqa: PLC0415
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415

    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    call = UserDefinedFunction(work, schema, evalType=kind)(*(frame[n] for n in frame.columns))
    return DataFrame(frame._jdf.pythonMapInArrow(call._jc.expr(), False), frame.sparkSession)


def _make_local_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """A small Arrow table as a frame, in one step whatever its size and the session's settings."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 (heavy)

    with tempfile.NamedTemporaryFile(prefix="reconciler-read-") as file:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        python = session._jvm.PythonSQLUtils
        batches = python.readArrowStreamFromFile(file.name)
        schema = json.dumps(to_spark_schema(table.schema))
        return DataFrame(python.toDataFrame(batches, schema, session._jsparkSession), session)


def _to_struct_type(schema: pa.Schema) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415 (heavy)

    return StructType.fromJson(to_spark_schema(schema))


def _to_column(java: Any) -> Column:
    from pyspark.sql import Column  # noqa: PLC0415 (heavy)

    return Column(java)
