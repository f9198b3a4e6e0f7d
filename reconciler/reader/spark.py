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

from reconciler.cluster.spark import ship
from reconciler.errors import ReconcilerError
from reconciler.hudi.arrow import integers, numbers, unique
from reconciler.predicates.functions import functions_in
from reconciler.reader.arrow_spark import is_void, spark_schema
from reconciler.reader.cells import quoted as column_name
from reconciler.reader.failures import sentence
from reconciler.reader.manifest import BATCH, FOLDER, manifest, quoted
from reconciler.reader.model import Scan
from reconciler.reader.predicate import check_where, is_of_spark, partition_condition
from reconciler.reader.pruning import Pruned, among, pruned_by_index, unpruned
from reconciler.reader.routes import of_slices, reasons
from reconciler.reader.rows import COMMIT_TIME, refuse_unreadable
from reconciler.reader.session import asked, clocks_of, odd_settings, own_functions
from reconciler.reader.skipping import Decision, condition_of, speaks_of_time
from reconciler.reader.tasks import in_tasks, weights
from reconciler.reader.worker import Worker, packed
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.redaction import redacted

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


def data_frame(
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
    return frame_of(session, left(session, scan, where, index), ref, where)


def left(session: SparkSession, scan: Scan, where: str | None, index: Storage | None) -> Pruned:
    """What a condition, if there is any, leaves of a scan; as ``pruned``."""
    with asked(session):
        return unpruned(scan) if where is None else pruned(session, scan, where, index)


def frame_of(session: SparkSession, found: Pruned, ref: StorageRef, where: str | None) -> DataFrame:
    """The rows of what ``where`` leaves of a scan for which it is true; as ``data_frame``."""
    scan = found.scan
    with asked(session):
        if where is None:
            return _rows(session, scan, ref)
        names = _named(session, scan, where)
        more = [scan.table_schema.field(name) for name in names if name not in scan.schema.names]
        wide = replace(found.kept, schema=pa.schema([*scan.schema, *more]))
        rows = _rows(session, wide, ref).filter(where)
        return rows.select(*map(column_name, scan.schema.names)) if more else rows


def pruned(session: SparkSession, scan: Scan, where: str, index: Storage | None) -> Pruned:
    """What a condition leaves of a scan. ``index``: as of ``data_frame``.

    Raises UsageError for a ``where`` that is no condition on the table's columns.
    """
    partitions = _matching_partitions(session, scan, where)
    number = numbers(scan.slices.column("partition").combine_chunks())
    mask = partitions[number] if len(number) else np.zeros(0, np.bool_)
    kept = of_slices(scan, mask)
    if index is None:
        return among(scan, mask, unpruned(kept, Decision.SWITCHED_OFF))
    odd = odd_settings(session)
    odd += [f"its own {name}()" for name in own_functions(session, functions_in(where))]
    if odd:
        said = f"the session has {odd[0]}, so what the condition means is left to Spark"
        found = replace(unpruned(kept, Decision.NOT_UNDERSTOOD), problems=(said,))
        return among(scan, mask, found)
    condition = condition_of(where, zone="")
    if speaks_of_time(scan, condition):
        condition = replace(condition, zone=clocks_of(session))
    return among(scan, mask, pruned_by_index(replace(kept, condition=condition), index))


def matching(session: SparkSession, scan: Scan, where: str) -> Scan:
    """The scan of those partitions that may hold a row for which the condition is true.

    Raises UsageError for a ``where`` that is no condition on the table's columns.
    """
    return scan.of_partitions(_matching_partitions(session, scan, where))


def _matching_partitions(session: SparkSession, scan: Scan, where: str) -> NDArray[np.bool_]:
    """Per partition whether it may hold a row for which the condition is true."""
    with asked(session):
        return _of_partitions(session, scan, where)


def _of_partitions(session: SparkSession, scan: Scan, where: str) -> NDArray[np.bool_]:
    _named(session, scan, where)
    every = np.ones(len(scan.partitions), np.bool_)
    if not scan.partition_schema.names or not len(scan.partitions):
        return every
    values = scan.partitions.select(scan.partition_schema.names)
    condition = partition_condition(_local(session, values.slice(0, 0)), where)
    if condition is None:
        return every
    row = "_".join(["row", *values.column_names])  # a name that none of them has
    frame = _local(session, values.append_column(row, integers(np.arange(len(values)))))
    try:
        kept = [
            row[0] for row in frame.filter(_column(condition)).select(column_name(row)).collect()
        ]
    except Exception as error:
        if not is_of_spark(error):
            raise
        return every  # a comparison that fails: Spark tells whoever asks for the rows
    mask = np.zeros(len(values), np.bool_)
    mask[kept] = True
    return mask


@contextmanager
def reading(ref: StorageRef) -> Iterator[None]:
    """While the block asks for rows of a table, an error of Spark is a ReconcilerError of a line.

    It names the file or the table and repeats no secret of ``ref``.
    """
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # noqa: PLC0415

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise ReconcilerError("the Java process of Spark's driver has ended") from error
    except Exception as error:
        if not is_of_spark(error):
            raise
        said = redacted(sentence(str(error)), ref.secrets)
        said = said if ".parquet" in said or ".log." in said else f"{ref.location}: {said}"
        raise ReconcilerError(said) from error


def reaches(session: SparkSession, location: str) -> bool:
    """Whether Spark has a file system for a table's location."""
    return _root(session, location) is not None


def _named(session: SparkSession, scan: Scan, where: str) -> tuple[str, ...]:
    return check_where(_local(session, scan.table_schema.empty_table()), where)


def _rows(session: SparkSession, scan: Scan, ref: StorageRef) -> DataFrame:
    refuse_unreadable(scan)
    root = _root(session, scan.location)
    is_direct = reasons(scan, spark_reaches=root is not None) < 0
    frames = []
    if root is not None and is_direct.any():
        frames.append(_direct(session, of_slices(scan, is_direct), root))
    if not is_direct.all():
        frames.append(_through_python(session, of_slices(scan, ~is_direct), ref))
    if not frames:
        return _local(session, scan.schema.empty_table())
    return reduce(lambda one, other: one.union(other), frames)


def _root(session: SparkSession, location: str) -> str | None:
    """The URI by which Spark finds a table; None where it has no file system for its store."""
    scheme, _, rest = location.partition("://")
    if not rest:
        return f"file://{quoted(location)}"
    files = session._jvm.org.apache.hadoop.fs.FileSystem
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    for name in _SCHEMES.get(scheme, (scheme,)):
        try:
            files.getFileSystemClass(name, hadoop)
        except Exception as error:
            if not is_of_spark(error):
                raise
            continue
        return f"{name}://{quoted(rest)}"
    return None


def _direct(session: SparkSession, scan: Scan, root: str) -> DataFrame:
    """Whole base files, as Spark's own parquet reader reads them.

    Partition columns come from a list of their values, by the number that every file carries as its
    modification time; so filters on them spare files (FileSourceStrategy prunes by metadata).
    """
    number = numbers(scan.slices.column("partition").combine_chunks())
    used = unique(number)
    base, sizes = (scan.slices.column(name).combine_chunks() for name in ("base", "base_size"))
    files = manifest(root, base, sizes, integers(np.searchsorted(used, number)))
    frame = _of_manifest(session, _stored(scan), files)
    columns = _columns(session, scan, frame, used)
    if scan.commit_times is not None:
        times = ",".join(f"'{time}'" for time in scan.commit_times)
        frame = frame.filter(f"{COMMIT_TIME} IN ({times or 'NULL'})")
    return frame.select(*columns)


def _stored(scan: Scan) -> pa.Schema:
    """What is read of base files: at least one column, and no column that no parquet file has."""
    fields = list(scan.schema)
    if scan.commit_times is not None and COMMIT_TIME not in scan.schema.names:
        fields.append(scan.table_schema.field(COMMIT_TIME))
    restored = scan.partition_schema.names
    is_stored = [field.name not in restored and not is_void(field.type) for field in fields]
    return pa.schema([f for f, stored in zip(fields, is_stored, strict=True) if stored])


def _of_manifest(session: SparkSession, schema: pa.Schema, files: bytes) -> DataFrame:
    """The files of a manifest as Spark sees them; it forgets the manifest at once.

    As DataSource.resolveRelation puts it together, but for what a session can set: another parquet
    source, or that logs of files are passed over, which would read none.
    """
    from pyspark.sql import DataFrame  # noqa: PLC0415 (heavy)

    java = session._jsparkSession
    option = session._jvm.scala.Option
    sources = session._jvm.org.apache.spark.sql.execution
    options = session._jvm.PythonUtils.toScalaMap(dict(_OPTIONS))
    columns = java.parseDataType(json.dumps(spark_schema(schema))).asNullable()
    with tempfile.TemporaryDirectory(prefix="reconciler-read-") as folder:
        (Path(folder) / FOLDER).mkdir()
        (Path(folder) / FOLDER / BATCH).write_bytes(files)
        path = session._jvm.org.apache.hadoop.fs.Path(
            session._jvm.java.net.URI(f"file://{quoted(folder)}")
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


def _columns(
    session: SparkSession, scan: Scan, frame: DataFrame, used: NDArray[Any]
) -> list[Column]:
    """The scan's columns: of the files, of the files' partitions, or null."""
    from pyspark.sql import Column, functions  # noqa: PLC0415 (heavy)

    restored = scan.partition_schema.names
    values: Column | None = None
    if any(name in restored for name in scan.schema.names):
        modified = Column(frame._jdf.metadataColumn("_metadata"))["file_modification_time"]
        values = functions.get(
            _values(session, scan, used), functions.unix_millis(modified).cast("int")
        )
    columns = []
    for field in scan.schema:
        if values is not None and field.name in restored:
            column = values[f"v{restored.index(field.name)}"]
        elif field.name in frame.columns:
            column = frame[column_name(field.name)]
        else:
            column = functions.lit(None).cast(_struct(pa.schema([field]))[0].dataType)
        columns.append(column.alias(field.name))
    return columns


def _values(session: SparkSession, scan: Scan, used: NDArray[Any]) -> Column:
    """A literal: the values of the partition columns, a struct for each of some partitions."""
    taken = scan.partitions.select(scan.partition_schema.names).take(integers(used))
    names = [f"v{at}" for at in range(taken.num_columns)]
    structs = pa.StructArray.from_arrays([c.combine_chunks() for c in taken.columns], names)
    ends = integers(np.array([0, len(taken)], np.int32))
    frame = _local(session, pa.table({"values": pa.ListArray.from_arrays(ends, structs)}))
    row = frame._jdf.queryExecution().executedPlan().executeCollect()[0]
    literal = session._jvm.org.apache.spark.sql.catalyst.expressions.Literal
    return _column(
        session._jvm.org.apache.spark.sql.Column(
            literal(row.getArray(0), frame._jdf.schema().apply(0).dataType())
        )
    )


def _through_python(session: SparkSession, scan: Scan, ref: StorageRef) -> DataFrame:
    """Slices as Python workers read and merge them, big ones first."""
    context = session.sparkContext
    ship(context)
    tasks = in_tasks(weights(scan.slices), context.defaultParallelism)
    packs: Any = packed(scan, tasks)
    if sum(map(len, packs)) > _BIG:
        packs = context.broadcast(packs)
    numbered = session.range(0, len(tasks), 1, len(tasks))
    return _map_in_arrow(numbered, Worker.of(scan, ref, packs), _struct(scan.schema))


def _map_in_arrow(frame: DataFrame, work: Worker, schema: Any) -> DataFrame:
    """As ``frame.mapInArrow``, which imports pandas (a second) to look at its version."""
    from pyspark.rdd import PythonEvalType  # noqa: PLC0415 (heavy)
    from pyspark.sql import DataFrame  # noqa: PLC0415
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415

    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    call = UserDefinedFunction(work, schema, evalType=kind)(*(frame[n] for n in frame.columns))
    return DataFrame(frame._jdf.pythonMapInArrow(call._jc.expr(), False), frame.sparkSession)


def _local(session: SparkSession, table: pa.Table) -> DataFrame:
    """A small Arrow table as a frame, in one step whatever its size and the session's settings."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 (heavy)

    with tempfile.NamedTemporaryFile(prefix="reconciler-read-") as file:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        python = session._jvm.PythonSQLUtils
        batches = python.readArrowStreamFromFile(file.name)
        schema = json.dumps(spark_schema(table.schema))
        return DataFrame(python.toDataFrame(batches, schema, session._jsparkSession), session)


def _struct(schema: pa.Schema) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415 (heavy)

    return StructType.fromJson(spark_schema(schema))


def _column(java: Any) -> Column:
    from pyspark.sql import Column  # noqa: PLC0415 (heavy)

    return Column(java)
