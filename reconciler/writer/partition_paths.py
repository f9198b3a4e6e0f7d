"""Make the partition paths of new rows as Hudi's key generators do; pure, by column.

Each column's distinct values are spelled once, and each combination's path is built once. Source:
KeyGenUtils.getRecordPartitionPath, PartitionPathEncodeUtils.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import RowsError, UnsupportedError
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass
from reconciler.writer.key_text import format_column
from reconciler.writer.record_keys import KeyGenerator, find_key_generator, has_logical_times

#: the folder of rows with a null or empty value
DEFAULT_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_HIVE: Final = "hoodie.datasource.write.hive_style_partitioning"
_ENCODED: Final = "hoodie.datasource.write.partitionpath.urlencode"
_SLASHED: Final = "hoodie.datasource.write.slash.separated.date.partitioning"
_ESCAPES: Final = {
    ord(char): f"%{ord(char):02X}" for char in (*map(chr, range(1, 32)), *"\"#%'*/:=?\\\x7f{[]^")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRule:
    """The rule by which partition paths are made.

    ``fields``: the partition columns, outermost first; empty for a table without partitions.
    ``is_hive``: folders are ``field=value``. ``is_encoded``: special characters are escaped.
    ``is_consistent``: as in ``KeyRule``.
    """

    fields: tuple[str, ...]
    is_hive: bool = False
    is_encoded: bool = False
    is_consistent: bool = False

    @classmethod
    def from_properties(cls, properties: TableProperties) -> Self:
        """Return the rule of a table; raises UnsupportedError for an unknown style of folders."""
        raw = properties.raw
        if raw.get(_SLASHED, "false").lower() == "true":
            raise UnsupportedError(
                f"table {properties.table_name}: folders of dates with slashes ({_SLASHED}) cannot "
                "be made here; write this table with Hudi"
            )
        fields = properties.partition_fields
        if find_key_generator(properties) is KeyGenerator.NON_PARTITION:
            fields = ()
        return cls(
            fields=fields,
            is_hive=raw.get(_HIVE, "false").lower() == "true",
            is_encoded=raw.get(_ENCODED, "false").lower() == "true",
            is_consistent=has_logical_times(properties),
        )


def make_partition_paths(batch: Any, rule: PartitionRule) -> Any:
    """Return the partition path of every row: a dictionary array of strings without nulls.

    ``""`` for a table without partitions. Raises RowsError naming column and value if a path
    would lead elsewhere (``..``, an empty or hidden folder) or Hudi could not open it (a colon in
    the outermost folder), and as ``format_column`` does.
    """
    if not rule.fields:
        return pa.array([""], pa.string()).dictionary_encode().take(pa.repeat(0, len(batch)))
    paths = None
    for name in rule.fields:
        folders = _make_folders(batch, name, rule)
        paths = folders if paths is None else _join_paths(paths, folders)
    return paths


def check_not_nested(paths: Collection[str], known: Collection[str]) -> None:
    """Raise RowsError if a new partition lies in another one, or contains one.

    ``known``: existing partitions. Readers find none below a partition
    (FSUtils.getAllPartitionPaths), so the folder that gets its metafile first hides the other's
    rows.
    """
    all_paths = {*paths, *known}
    for inner in sorted(all_paths):
        parts = inner.split("/")
        for depth in range(1, len(parts)):
            outer = "/".join(parts[:depth])
            if outer in all_paths and not (inner in known and outer in known):
                raise RowsError(
                    f"partition {inner!r} lies inside partition {outer!r}, where readers do not "
                    f"find it, so its rows would be invisible; a table with {_ENCODED} escapes "
                    "slashes"
                )


def _make_folders(batch: Any, name: str, rule: PartitionRule) -> Any:
    """Return a column's values as folder names: a dictionary array."""
    values = format_column(batch, name, is_consistent=rule.is_consistent).fill_null("")
    encoded = values.dictionary_encode()
    folders = [_make_folder(value, name, rule) for value in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(folders, pa.string()))


def _make_folder(value: str, name: str, rule: PartitionRule) -> str:
    folder = escape_path(value) if rule.is_encoded else value
    path = f"{name}={folder or DEFAULT_FOLDER}" if rule.is_hive else folder or DEFAULT_FOLDER
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or part.startswith(".hoodie") for part in parts):
        hint = "" if rule.is_encoded else f"; a table with {_ENCODED} escapes slashes"
        raise RowsError(f"partition column {name}: {value!r} does not name a folder{hint}")
    if name == rule.fields[0] and ":" in parts[0]:  # Hadoop would read it as a scheme
        raise RowsError(
            f"partition column {name}: {value!r} has a colon, and Hudi cannot open a table with "
            "one in an outermost folder; partition by another column, for example a day"
        )
    return path


def _join_paths(outer: Any, inner: Any) -> Any:
    """Join two dictionary arrays of paths, one below the other."""
    width = len(inner.dictionary)
    codes = pc.add(pc.multiply(outer.indices.cast(pa.int64()), width), inner.indices)
    pairs = codes.dictionary_encode()
    outer_paths = outer.dictionary.take(pc.divide(pairs.dictionary, width))
    inner_codes = pc.subtract(
        pairs.dictionary, pc.multiply(pc.divide(pairs.dictionary, width), width)
    )
    paths = pc.binary_join_element_wise(outer_paths, inner.dictionary.take(inner_codes), "/")
    return _merge_equal_paths(pairs.indices, paths)


def _merge_equal_paths(codes: Any, paths: Any) -> Any:
    """Give equal paths one code; values with slashes can lead to equal paths."""
    encoded = paths.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(codes), encoded.dictionary)


def escape_path(value: str) -> str:
    """PartitionPathEncodeUtils.escapePathName.

    >>> escape_path("a/b é")
    'a%2Fb é'
    """
    return value.translate(_ESCAPES)
