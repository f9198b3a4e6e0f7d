"""Footers and indexes in memory for the tests of the index."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.index.footers import index_footers


def write_footer(table, *, by=None, **options):
    """Return the footer of a table written as a file; ``by``: the writer that it names."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    data = sink.getvalue().to_pybytes()
    length = int.from_bytes(data[-8:-4], "little") + 8
    footer = data[-length:]
    if by:
        writer = pq.read_metadata(pa.BufferReader(data)).created_by
        assert footer.count(writer.encode()) == 1
        assert len(by) <= len(writer)
        footer = footer.replace(writer.encode(), by.ljust(len(writer)).encode())
    return footer


def read_column_stats(array, kind=None, *, by=None, name="f.parquet", **options):
    """Return the statistics of one file with a column x; ``kind``: its type in the table."""
    footer = write_footer(pa.table({"x": array}), by=by, **options)
    schema = pa.schema([("x", kind or array.type)])
    return index_footers([("", name, 1, footer)], ["x"], schema).columns["x"]


def read_facts(stats, row=0):
    """Return least, greatest, nulls and values of a file."""
    ends = (stats.least[row].as_py(), stats.greatest[row].as_py())
    return (*ends, int(stats.nulls[row]), int(stats.values[row]))


def make_index(*files, columns=("x",), kind=None, schema=None):
    """Return an index of files given as (partition, name, size, values of all columns or of x)."""
    kind = kind or pa.int64()
    schema = schema or pa.schema([(column, kind) for column in columns])
    made = []
    for partition, name, size, values in files:
        rows = values if isinstance(values, dict) else {columns[0]: values}
        table = pa.table({c: pa.array(v, schema.field(c).type) for c, v in rows.items()})
        made.append((partition, name, size, write_footer(table)))
    return index_footers(made, list(columns), schema)


def index_facts(index):
    """Return an index as Python values."""
    return {
        "partition": index.partition.to_pylist(),
        "name": index.name.to_pylist(),
        "size": index.size.tolist(),
        "rows": index.rows.tolist(),
        "columns": {
            column: (
                str(stats.type),
                *(str(side.to_pylist()) for side in (stats.least, stats.greatest)),
                stats.nulls.tolist(),
                stats.values.tolist(),
                stats.is_exact_least.tolist(),
                stats.is_exact_greatest.tolist(),
                stats.is_nan_free.tolist(),
            )
            for column, stats in index.columns.items()
        },
    }
