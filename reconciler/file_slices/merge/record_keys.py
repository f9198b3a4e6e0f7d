"""Read the record keys of rows, or build them from key columns if the table stores none.

Source: KeyGenUtils, SimpleAvroKeyGenerator (the value as text), ComplexAvroKeyGenerator (names and
values; null and empty values have placeholders).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.rules import MergeRules


def read_record_keys(batch: Any, rules: MergeRules, path: str) -> Any:
    """Return the key of every row as text; raises FormatError naming ``path`` if one is missing.

    Raises UnsupportedError when a key column's type is one that only Hudi can convert to text.
    """
    parts = [_read_key_column(batch, name, path) for name in rules.key_columns]
    if rules.has_named_keys:
        named = [
            pc.binary_join_element_wise(f"{name}:", _spell_key_part(part), "")
            for name, part in zip(rules.key_columns, parts, strict=True)
        ]
        return pc.binary_join_element_wise(*named, ",")
    (keys,) = parts
    if keys.null_count:
        raise FormatError(
            path,
            f"{keys.null_count} records have no {rules.key_columns[0]}",
            "compact the table with Hudi",
        )
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


def _spell_key_part(column: Any) -> Any:
    return pc.if_else(pc.equal(column, ""), "__empty__", column).fill_null("__null__")
