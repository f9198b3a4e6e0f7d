"""Read the record keys of rows, and which rows are deletions.

Keys are built from key columns if the table stores none. Source: KeyGenUtils,
SimpleAvroKeyGenerator (the value as text), ComplexAvroKeyGenerator (names and values; null and
empty values have placeholders); DeleteContext, RecordContext.isDeleteRecord for deletions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.rules import IS_DELETED, OPERATION, MergeRules


def read_record_keys(batch: Any, rules: MergeRules, path: str) -> Any:
    """Return the key of every row as text; raises FormatError naming ``path`` if one is missing.

    Raises UnsupportedError when a key column's type is one that only Hudi can convert to text.
    """
    parts = [_read_key_column(batch, name, path) for name in rules.key_columns]
    if rules.has_named_keys:
        return join_named_keys(rules.key_columns, parts)
    (keys,) = parts
    if keys.null_count:
        message = f"{keys.null_count} records have no {rules.key_columns[0]}"
        raise FormatError(path, message, "compact the table with Hudi")
    return keys


def _read_key_column(batch: Any, name: str, path: str) -> Any:
    column = find_column(batch, name)
    if column is None:
        raise FormatError(path, f"has no key column {name}")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        raise UnsupportedError(
            f"{path}: the records store no keys, and only Hudi can make them from {name} "
            f"({column.type})"
        )
    return column.cast(pa.string())


def join_named_keys(names: Sequence[str], parts: Sequence[Any]) -> Any:
    """Return keys like ``a:1,b:2`` of columns of text; null and empty values have placeholders."""
    named_parts = [
        pc.binary_join_element_wise(
            f"{name}:", pc.if_else(pc.equal(part, ""), "__empty__", part).fill_null("__null__"), ""
        )
        for name, part in zip(names, parts, strict=True)
    ]
    return pc.binary_join_element_wise(*named_parts, ",")


def find_keys(batch: Any, keys: Any, rules: MergeRules, path: str) -> tuple[Integers, Integers]:
    """Return the rows of a batch that have one of the keys, and the position of each one's key.

    Raises as ``read_record_keys`` does.
    """
    places = pc.index_in(read_record_keys(batch, rules, path), value_set=keys)
    rows = np.flatnonzero(to_numpy(places.is_valid()))
    return rows, to_numpy(places.drop_null()).astype(np.int64)


def find_deletions(batch: Any, marker: tuple[str, str] | None) -> Mask:
    """Return for every row whether its content makes it a deletion.

    ``marker``: a column and the text in it that marks a deletion, or None.
    """
    is_deletion = np.zeros(len(batch), np.bool_)
    flag = find_column(batch, IS_DELETED)
    if flag is not None and pa.types.is_boolean(flag.type):
        is_deletion |= to_numpy(flag.fill_null(False))
    operation = find_column(batch, OPERATION)
    if operation is not None and len(batch):
        is_deletion |= to_numpy(
            pc.is_in(operation.cast(pa.string()), value_set=to_arrow(["D", "-U"]))
        )
    if marker:
        name, text = marker
        column = find_column(batch, name)
        if column is not None:
            is_marked = pc.equal(column.cast(pa.string()), text)
            is_deletion |= to_numpy(is_marked.fill_null(False))
    return is_deletion
