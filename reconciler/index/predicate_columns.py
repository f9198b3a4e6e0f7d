"""Find the columns that a predicate names. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.errors import did_you_mean
from reconciler.index.model import indexed_type
from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import Predicate, find_columns
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

_META: Final = "_hoodie_"
#: names that Spark resolves itself if the table has no such column: functions called without
#: parentheses, and the metadata of files (LiteralFunctionResolution, FileFormat.METADATA_NAME)
_SPARK_NAMES: Final = frozenset({"user", "session_user", "grouping__id", "_metadata"})


def find_predicate_columns(predicate: Predicate, schema: Any) -> tuple[str, ...]:
    """Return the indexable columns of a schema that a predicate names, in order, each once.

    Struct fields are named with dots. Case is ignored. Parts of the predicate that the parser does
    not understand name no columns.

    >>> find_predicate_columns(parse("ID > 1 AND s.a = 2 AND hash(t) = 7"), pa.schema(
    ...     [("id", pa.int64()), ("s", pa.struct([("a", pa.int8())])), ("t", pa.string())]))
    ('id', 's.a')
    """
    fields = [resolve_name(column.parts, schema) for column in find_columns(predicate)]
    names = (field[0] for field in fields if field and indexed_type(field[1]) is not None)
    return tuple(dict.fromkeys(names))


def find_query_columns(wheres: Sequence[str], schema: Any) -> tuple[str, ...]:
    """Return the indexable columns that several predicates name, each once.

    >>> find_query_columns(["A.b = 1 or not c < 2", "d = 3", "c > 9"], pa.schema([
    ...     ("a", pa.struct([("b", pa.int32())])), ("C", pa.int32())]))
    ('a.b', 'C')
    """
    names = (name for where in wheres for name in find_predicate_columns(parse(where), schema))
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name in a predicate that no column has.

    ``suggestion``: a similar column name, None if there is none. ``available``: the valid names.
    """

    name: str
    suggestion: str | None
    available: str

    @property
    def message(self) -> str:
        hint = f"did you mean {self.suggestion!r}?" if self.suggestion else self.available
        return f"the table has no column {self.name!r}; {hint}"


def find_unknown_names(where: str, schema: Any) -> tuple[UnknownName, ...]:
    """Return the names in a predicate that no column or struct field of a schema has, each once.

    Case is ignored. Parts of the predicate that the parser does not understand are not checked.

    >>> schema = pa.schema([("id", pa.int64()), ("address", pa.struct([("city", pa.string())]))])
    >>> where = "idd = 1 or f(x) = 2 or Address.zip = 3 or id.x = 1"
    >>> for found in find_unknown_names(where, schema):
    ...     print(found.message)
    the table has no column 'idd'; did you mean 'id'?
    the table has no column 'Address.zip'; the fields of address are city
    the table has no column 'id.x'; id is of type int64
    """
    parts = (column.parts for column in find_columns(parse(where)))
    unknown = (check_name(name, schema) for name in dict.fromkeys(parts))
    return tuple(name for name in unknown if name is not None)


def check_name(parts: Sequence[str], schema: Any) -> UnknownName | None:
    """Return the problem with a name given by its parts; None if the schema may have it."""
    name, path, fields = ".".join(parts), "", list(schema)
    if parts[0].lower() in _SPARK_NAMES:
        return None
    for nth, part in enumerate(parts, start=1):
        matching = [field for field in fields if field.name.lower() == part.lower()]
        if not matching:
            return _describe_unknown(name, path, part, [field.name for field in fields])
        path, kind = f"{path}{matching[0].name}.", matching[0].type
        is_struct = pa.types.is_struct(kind)
        if len(matching) > 1 or (pa.types.is_nested(kind) and not is_struct):
            return None  # elements of lists and maps may have any name
        if not is_struct and nth < len(parts):
            return UnknownName(name, None, f"{path[:-1]} is of type {kind}")
        fields = list(kind) if is_struct else []
    return None


def _describe_unknown(name: str, path: str, part: str, names: Sequence[str]) -> UnknownName:
    """Describe a missing name; ``path``: the struct that lacks it with a final dot, or empty."""
    known = [name for name in names if path or not name.startswith(_META)]
    near = did_you_mean(part, known)
    what = f"the fields of {path[:-1]}" if path else "its columns"
    return UnknownName(name, near and path + near, f"{what} are {', '.join(known)}")


def resolve_name(parts: Sequence[str], schema: Any) -> tuple[str, Any] | None:
    """Return the name and the type of the column or field with a name given by its parts.

    None if it is missing or ambiguous. Case is ignored.
    """
    names: list[str] = []
    kind: Any = None
    fields = list(schema)
    for part in parts:
        matching = [field for field in fields if field.name.lower() == part.lower()]
        if len(matching) != 1:
            return None
        names.append(matching[0].name)
        kind = matching[0].type
        fields = list(kind) if pa.types.is_struct(kind) else []
    return ".".join(names), kind
