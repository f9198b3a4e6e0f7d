"""The partition paths of new rows, as Hudi's key generators make them; pure, by column.

Source: KeyGenUtils.getRecordPartitionPath, PartitionPathEncodeUtils. Of each column its distinct
values are spelled, and of each combination one path is put together.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import RowsError, UnsupportedError
from reconciler.hudi.table.properties import TableProperties
from reconciler.writer.key_generators import (
    KeyGenerator,
    find_key_generator,
    has_logical_timestamps,
)
from reconciler.writer.key_text import spell_column

#: the folder of rows whose value is null or empty
DEFAULT_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_HIVE: Final = "hoodie.datasource.write.hive_style_partitioning"
_ENCODED: Final = "hoodie.datasource.write.partitionpath.urlencode"
_SLASHED: Final = "hoodie.datasource.write.slash.separated.date.partitioning"
_ESCAPES: Final = {
    ord(char): f"%{ord(char):02X}" for char in (*map(chr, range(1, 32)), *"\"#%'*/:=?\\\x7f{[]^")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRule:
    """``fields``: the columns of the partitions, outermost first; none for a table without any.

    ``is_hive``: folders are ``field=value``. ``is_encoded``: what paths have trouble with is
    escaped. ``has_logical_timestamps``: as of keys.
    """

    fields: tuple[str, ...]
    is_hive: bool = False
    is_encoded: bool = False
    is_consistent: bool = False

    @classmethod
    def from_properties(cls, properties: TableProperties) -> Self:
        """The rule of a table; raises UnsupportedError naming a way of folders that is unknown."""
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
            is_consistent=has_logical_timestamps(properties),
        )


def make_partition_paths(batch: Any, rule: PartitionRule) -> Any:
    """The partition path of every row: a dictionary array of strings without nulls.

    ``""`` for a table without partitions. Raises RowsError naming column and value where a path
    would lead elsewhere (``..``, an empty or a hidden folder) or Hudi could not open it (a colon in
    the outermost folder), and as ``spell_column`` does.
    """
    if not rule.fields:
        return pa.array([""], pa.string()).dictionary_encode().take(pa.repeat(0, len(batch)))
    paths = None
    for name in rule.fields:
        own = _make_folders(batch, name, rule)
        paths = own if paths is None else _join_paths(paths, own)
    return paths


def check_not_nested(paths: Collection[str], known: Collection[str]) -> None:
    """Raises RowsError where a partition that the ``known`` ones lack lies in another or holds one.

    Readers look for none below a partition (FSUtils.getAllPartitionPaths): whose folder gets its
    metafile first hides the rows of the other.
    """
    there = {*paths, *known}
    for inner in sorted(there):
        parts = inner.split("/")
        for depth in range(1, len(parts)):
            outer = "/".join(parts[:depth])
            if outer in there and not (inner in known and outer in known):
                raise RowsError(
                    f"partition {inner!r} lies in partition {outer!r}, and readers look for none "
                    f"there: its rows would be in no result; a table with {_ENCODED} escapes "
                    "slashes"
                )


def _make_folders(batch: Any, name: str, rule: PartitionRule) -> Any:
    """A column's values as folders: a dictionary array."""
    found = spell_column(batch, name, is_consistent=rule.is_consistent).fill_null("")
    encoded = found.dictionary_encode()
    folders = [_make_folder(text, name, rule) for text in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(folders, pa.string()))


def _make_folder(text: str, name: str, rule: PartitionRule) -> str:
    folder = escape_path(text) if rule.is_encoded else text
    path = f"{name}={folder or DEFAULT_FOLDER}" if rule.is_hive else folder or DEFAULT_FOLDER
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or part.startswith(".hoodie") for part in parts):
        hint = "" if rule.is_encoded else f"; a table with {_ENCODED} escapes slashes"
        raise RowsError(f"partition column {name}: {text!r} does not name a folder{hint}")
    if name == rule.fields[0] and ":" in parts[0]:  # a path of Hadoop would begin with a scheme
        raise RowsError(
            f"partition column {name}: {text!r} has a colon, and Hudi cannot open a table of which "
            "an outermost folder has one; partition it by a column without, as a day"
        )
    return path


def _join_paths(outer: Any, inner: Any) -> Any:
    """The paths of two dictionary arrays, one below the other."""
    width = len(inner.dictionary)
    codes = pc.add(pc.multiply(outer.indices.cast(pa.int64()), width), inner.indices)
    pairs = codes.dictionary_encode()
    above = outer.dictionary.take(pc.divide(pairs.dictionary, width))
    rest = pc.subtract(pairs.dictionary, pc.multiply(pc.divide(pairs.dictionary, width), width))
    paths = pc.binary_join_element_wise(above, inner.dictionary.take(rest), "/")
    return _merge_equal_paths(pairs.indices, paths)


def _merge_equal_paths(codes: Any, paths: Any) -> Any:
    """Equal paths under one code: values with slashes in them can make the same path."""
    encoded = paths.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(codes), encoded.dictionary)


def escape_path(text: str) -> str:
    """PartitionPathEncodeUtils.escapePathName.

    >>> escape_path("a/b é")
    'a%2Fb é'
    """
    return text.translate(_ESCAPES)
