"""Make the record keys of new rows as Hudi's key generators do; pure, by column.

Unsupported generators are refused by name. Source: KeyGeneratorType, HoodieTableConfig,
KeyGenUtils.inferKeyGeneratorType, SimpleAvroKeyGenerator, ComplexAvroKeyGenerator and
NonpartitionedAvroKeyGenerator.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.record_keys import join_named_keys
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass
from reconciler.writer.key_text import format_column

#: from this table version on, Hudi's complex keys of one field include its name
_NAMED_FROM_VERSION: Final = 9
_CLASS: Final = "hoodie.table.keygenerator.class"
_TYPE: Final = "hoodie.table.keygenerator.type"
_CONSISTENT: Final = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


class KeyGenerator(Enum):
    """A supported key generator, as ``hoodie.table.keygenerator.type`` names it."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"


_CLASSES: Final = {
    "Simple": KeyGenerator.SIMPLE,
    "Complex": KeyGenerator.COMPLEX,
    "Nonpartitioned": KeyGenerator.NON_PARTITION,
}


def find_key_generator(properties: TableProperties) -> KeyGenerator:
    """Return the key generator of a table, inferred from its fields if it names none.

    Raises UnsupportedError naming any other generator, which makes keys or folders differently.
    """
    raw = properties.raw
    class_name, type_name = raw.get(_CLASS, ""), raw.get(_TYPE, "")
    if class_name:
        simple_name, suffix = class_name.rpartition(".")[2], "KeyGenerator"
        name = simple_name.removesuffix(suffix).removesuffix("Avro")
        generator = _CLASSES.get(name) if simple_name.endswith(suffix) else None
    else:
        generator = KeyGenerator.__members__.get(type_name.upper().removesuffix("_AVRO"))
    if generator is not None:
        return generator
    if class_name or type_name:
        raise UnsupportedError(
            f"table {properties.table_name}: key generator {class_name or type_name} is not "
            f"supported, only {', '.join(KeyGenerator.__members__)}; write it with Hudi"
        )
    if not properties.partition_fields:
        return KeyGenerator.NON_PARTITION
    has_several = len(properties.partition_fields) > 1 or len(properties.record_keys) > 1
    return KeyGenerator.COMPLEX if has_several else KeyGenerator.SIMPLE


def has_logical_times(properties: TableProperties) -> bool:
    """True if the table tells its writers to spell timestamps as logical timestamps."""
    return properties.raw.get(_CONSISTENT, "false").lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """The rule by which record keys are made. ``fields``: their columns; dots lead into structs.

    ``is_named``: keys are ``a:1,b:2``. ``is_consistent``: timestamps are spelled as
    logical timestamps, as the table's properties demand.
    """

    fields: tuple[str, ...]
    is_named: bool = False
    is_consistent: bool = False

    @classmethod
    def from_properties(cls, properties: TableProperties, written: Sequence[str] = ()) -> Self:
        """Return the rule of a table; ``written``: some record keys of its files, if any.

        They decide if the table does not declare it: a complex key of one field is ``a:1`` as
        written by Hudi before 0.14.1 and from table version 9 on, ``1`` as written by Hudi 0.14.1
        to 1.0.2 (and, without ``written``, in tables of version 6 and 8). Raises UnsupportedError
        for keys that cannot be made: of another generator, without stored keys, or where
        ``written`` has both kinds or one that Hudi would not write.
        """
        generator = find_key_generator(properties)
        name, fields = properties.table_name, properties.record_keys
        if not fields:
            raise UnsupportedError(
                f"table {name}: its writer generates record keys (hoodie.table.recordkey.fields is "
                "empty), so no row could be found again; write it with Hudi"
            )
        is_named = len(fields) > 1
        if generator is KeyGenerator.COMPLEX and not is_named:
            is_named = _has_field_name(properties, fields[0], written)
        if generator is KeyGenerator.SIMPLE and len(fields) > 1:
            raise UnsupportedError(
                f"table {name}: a simple key generator makes no keys of {', '.join(fields)}"
            )
        return cls(fields=fields, is_named=is_named, is_consistent=has_logical_times(properties))


def _has_field_name(properties: TableProperties, field: str, written: Sequence[str]) -> bool:
    """True if the complex key of a single field includes its name."""
    by_version = properties.table_version >= _NAMED_FROM_VERSION
    named = {key.startswith(f"{field}:") for key in written}
    if len(named) > 1 or named == {not by_version} == {False}:
        raise UnsupportedError(
            f"table {properties.table_name}: its record keys are spelled both {field}:VALUE and "
            "VALUE, by different Hudi versions, so rows would be duplicated; rewrite it with one "
            "of them (hoodie.write.complex.keygen.new.encoding)"
        )
    return named.pop() if named else by_version


def make_record_keys(batch: Any, rule: KeyRule) -> Any:
    """Return the record key of every row: a string array without nulls.

    Raises RowsError naming column and row for a key that is null or empty (in all parts), and as
    ``format_column`` does.
    """
    parts = [format_column(batch, name, is_consistent=rule.is_consistent) for name in rule.fields]
    absent_parts = [pc.equal(part, "").fill_null(True) for part in parts]
    is_absent = absent_parts[0]
    for other in absent_parts[1:]:
        is_absent = pc.and_(is_absent, other)
    row = pc.index(is_absent, pa.scalar(True)).as_py()
    if row >= 0:
        names = ", ".join(rule.fields)
        count = pc.sum(is_absent).as_py()
        raise RowsError(
            f"record key {names}: null or empty in {count} of {len(batch)} rows, first in row {row}"
            " (counted from 0); every row needs a key"
        )
    if not rule.is_named:
        (keys,) = parts
        return keys
    return join_named_keys(rule.fields, parts)
