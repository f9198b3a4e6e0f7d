"""Find the text columns of a base file that are read as dictionaries: codes and few texts.

Rows that only travel to another file then carry four bytes for such a text. They are decoded,
moved, compared and encoded in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow, to_numpy

#: the type of such a column
CODED_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
#: the most bytes of a dictionary page: every small batch of rows carries the texts with it
_MAX_PAGE: Final = 2048
#: the fewest rows for which it pays
_MIN_ROWS: Final = 4096
#: encodings of a chunk whose pages have nothing but codes; other writers' names do not tell
_CODES: Final = frozenset({"PLAIN_DICTIONARY", "RLE", "BIT_PACKED"})


def find_repeated_texts(footer: Any, groups: Sequence[int], schema: pa.Schema) -> list[str]:
    """Return the names of the columns with few texts in all of the given row groups.

    ``footer``: pyarrow's FileMetaData. ``schema``: the wanted columns.
    """
    row_groups = [footer.row_group(group) for group in groups]
    if sum(group.num_rows for group in row_groups) < _MIN_ROWS:
        return []
    texts = {field.name for field in schema if field.type == pa.string()}
    leaves = [footer.schema.column(at) for at in range(footer.num_columns)]
    return [
        leaf.path
        for at, leaf in enumerate(leaves)
        if leaf.path in texts
        and leaf.logical_type.type == "STRING"
        and all(_has_few_texts(group.column(at)) for group in row_groups)
    ]


def _has_few_texts(chunk: Any) -> bool:
    start = chunk.dictionary_page_offset
    if start is None or not _CODES.issuperset(chunk.encodings):
        return False
    return bool(0 < chunk.data_page_offset - start <= _MAX_PAGE)


def code_texts(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the schema with some of its text columns as dictionaries."""
    return pa.schema(
        field.with_type(CODED_TEXT) if field.name in names else field for field in schema
    )


def decode_unlike(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the batches with one schema: a text is coded in all of them or in none.

    The batches have the same columns.
    """
    first = batches[0].schema
    if all(batch.schema.equals(first) for batch in batches):
        return list(batches)
    coded = [
        {field.name for field in batch.schema if pa.types.is_dictionary(field.type)}
        for batch in batches
    ]
    plain = set.union(*coded) - set.intersection(*coded)
    return [_decode_texts(batch, plain) for batch in batches]


def _decode_texts(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    columns = {field.name: batch.column(at) for at, field in enumerate(batch.schema)}
    decoded = {
        name: column.dictionary_decode()
        if name in names and pa.types.is_dictionary(column.type)
        else column
        for name, column in columns.items()
    }
    return pa.RecordBatch.from_arrays(list(decoded.values()), names=list(decoded))


def sort_texts_by_use(rows: pa.Table) -> pa.Table:
    """Return rows whose dictionaries have the texts that rows use, in the order of their rows.

    Parquet stores the whole dictionary, and plain texts from the second dictionary on. With this
    order, a file has the bytes that plain texts give it.
    """
    columns = [
        _sort_by_use(column) if pa.types.is_dictionary(column.type) else column
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _sort_by_use(column: Any) -> Any:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # Arrow keeps none and several chunks
        return column
    texts, codes = whole.dictionary, whole.indices
    used = codes.unique().drop_null()
    places = to_numpy(used)
    if np.array_equal(places, np.arange(len(texts))):
        return whole
    numbers = np.zeros(len(texts), np.int32)
    numbers[places] = np.arange(len(places))
    return pa.DictionaryArray.from_arrays(to_arrow(numbers).take(codes), texts.take(used))
