"""Which of Hudi's key generators a table has: those that can be followed, others by name.

Source: KeyGeneratorType, HoodieTableConfig, KeyGenUtils.inferKeyGeneratorType.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.table.properties import TableProperties

_CLASS: Final = "hoodie.table.keygenerator.class"
_TYPE: Final = "hoodie.table.keygenerator.type"
_CONSISTENT: Final = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


class KeyGenerator(Enum):
    """A key generator that can be followed, as ``hoodie.table.keygenerator.type`` names it."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"


_CLASSES: Final = {
    f"{name}{avro}KeyGenerator": generator
    for name, generator in {
        "Simple": KeyGenerator.SIMPLE,
        "Complex": KeyGenerator.COMPLEX,
        "Nonpartitioned": KeyGenerator.NON_PARTITION,
    }.items()
    for avro in ("", "Avro")
}
_TYPES: Final = {
    f"{generator.value}{avro}": generator for generator in KeyGenerator for avro in ("", "_AVRO")
}


def find_key_generator(properties: TableProperties) -> KeyGenerator:
    """The key generator of a table; where it names none, the one that its fields ask for.

    Raises UnsupportedError naming any other, which writes keys or folders in a way of its own.
    """
    raw = properties.raw
    named, kind = raw.get(_CLASS, ""), raw.get(_TYPE, "")
    found = _CLASSES.get(named.rpartition(".")[2]) if named else _TYPES.get(kind.upper())
    if found is not None:
        return found
    if named or kind:
        raise UnsupportedError(
            f"table {properties.table_name}: the keys and folders of key generator {named or kind} "
            f"cannot be made here, only those of {', '.join(list_supported_generators())}; write this table with Hudi"
        )
    if not properties.partition_fields:
        return KeyGenerator.NON_PARTITION
    several = len(properties.partition_fields) > 1 or len(properties.record_keys) > 1
    return KeyGenerator.COMPLEX if several else KeyGenerator.SIMPLE


def list_supported_generators() -> tuple[str, ...]:
    """The generators that can be followed, by the names that a table says."""
    return tuple(generator.value for generator in KeyGenerator)


def has_logical_timestamps(properties: TableProperties) -> bool:
    """Whether the table tells its writers to spell moments as logical timestamps."""
    return properties.raw.get(_CONSISTENT, "false").lower() == "true"
