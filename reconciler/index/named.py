"""Which columns a predicate speaks of; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconciler.index.model import kept_type
from reconciler.predicates.parse import parse
from reconciler.predicates.syntax import Predicate, columns_in

if TYPE_CHECKING:
    from collections.abc import Sequence


def named_columns(predicate: Predicate, schema: Any) -> tuple[str, ...]:
    """The columns of a schema that may be indexed and that a predicate speaks of, as they come.

    With dots into structs, each once; whatever the spelling of their letters. What is not
    understood of the predicate names nothing.

    >>> named_columns(parse("ID > 1 AND s.a = 2 AND upper(t) = 'X'"), pa.schema(
    ...     [("id", pa.int64()), ("s", pa.struct([("a", pa.int8())])), ("t", pa.string())]))
    ('id', 's.a')
    """
    found: dict[str, None] = {}
    for column in columns_in(predicate):
        name = _resolved(column.parts, list(schema))
        if name is not None:
            found[name] = None
    return tuple(found)


def asked_columns(wheres: Sequence[str], schema: Any) -> tuple[str, ...]:
    """Those of several predicates, given by their texts; each once.

    >>> asked_columns(["A.b = 1 or not c < 2", "d = 3", "c > 9"], pa.schema([
    ...     ("a", pa.struct([("b", pa.int32())])), ("C", pa.int32())]))
    ('a.b', 'C')
    """
    found = (name for where in wheres for name in named_columns(parse(where), schema))
    return tuple(dict.fromkeys(found))


def _resolved(parts: Sequence[str], fields: Sequence[Any]) -> str | None:
    """The name of the one column that is meant; None where there is none, or its type is odd."""
    names: list[str] = []
    kind: Any = None
    for part in parts:
        found = [field for field in fields if field.name.lower() == part.lower()]
        if len(found) != 1:
            return None
        names.append(found[0].name)
        kind = found[0].type
        fields = list(kind) if pa.types.is_struct(kind) else []
    return ".".join(names) if kept_type(kind) is not None else None
