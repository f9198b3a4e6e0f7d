"""Names for adopted tables: safe, unique, and the same at every run.

A name is a spec's ``metadata.name`` and, with an ending, the name of its file. Names that only
differ in case count as equal, because some disks do not distinguish such files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from reconciler.lazy_dataclass import dataclass

_UNSAFE: Final = re.compile("[^A-Za-z0-9_.-]+")
#: leaves room for an ending and a number within the 255 bytes of a file name
_MAX_LENGTH: Final = 200
#: Hive's name for "no particular database", which is no part of a name
_NO_DATABASE: Final = ("", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnamedTable:
    """A table that needs a name; ``table`` and ``database`` are from its properties."""

    location: str
    table: str
    database: str = ""


def choose_names(tables: Sequence[UnnamedTable], taken: Collection[str] = ()) -> Mapping[str, str]:
    """Return an unused name for every location.

    It is the table's own name, after its database if it has one. If that is used, or several tables
    have it, their folders are added, the nearest first, and finally a number.
    """
    chosen: dict[str, str] = {}
    used = {name.casefold() for name in taken}
    waiting = {table.location: _candidates(table) for table in tables}
    while waiting:
        wanted = {at: next(filter(None, names), None) for at, names in sorted(waiting.items())}
        counts = Counter(name.casefold() for name in wanted.values() if name is not None)
        for location, name in wanted.items():
            if name is None:
                folder = to_safe_name(location.rpartition("/")[2]) or "table"
                chosen[location] = _add_number(folder, used | counts.keys())
                used.add(chosen[location].casefold())
                del waiting[location]
            elif counts[name.casefold()] == 1 and name.casefold() not in used:
                chosen[location] = name
                used.add(name.casefold())
                del waiting[location]
    return chosen


def preferred_name(table: UnnamedTable) -> str:
    """Return the name of a table if no other table has it."""
    return next(filter(None, _candidates(table)), "")


def to_safe_name(text: str) -> str:
    """Return the text as a name of letters, digits, ``.``, ``_`` and ``-``; "" without any.

    >>> [to_safe_name(text) for text in ("sales.orders", "../../etc/passwd", "_x", "заказы", "..")]
    ['sales.orders', 'etc_passwd', '_x', '', '']
    """
    plain = _UNSAFE.sub("_", text)
    ends = ".-" if plain == text else "._-"
    return plain.strip(ends)[:_MAX_LENGTH].rstrip(ends)


def _candidates(table: UnnamedTable) -> Iterator[str]:
    named = [table.table] if table.database in _NO_DATABASE else [table.database, table.table]
    folders = [part for part in table.location.split("://")[-1].split("/") if part]
    yield _join_parts(named)
    if len(folders) > 1:
        yield _join_parts([folders[-2], table.table])
    for depth in range(2, len(folders) + 1):
        yield _join_parts(folders[-depth:])


def _join_parts(parts: Sequence[str]) -> str:
    """Return the parts with dots between them; "" if one of them is no name."""
    names = [to_safe_name(part) for part in parts]
    return to_safe_name(".".join(names)) if all(names) else ""


def _add_number(name: str, used: Collection[str]) -> str:
    return next(new for n in count(2) if (new := f"{name}-{n}").casefold() not in used)
