"""Find which of Hudi's key generators a table has; unsupported ones are refused by name.

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
