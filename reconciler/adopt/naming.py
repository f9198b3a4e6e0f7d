"""Names for tables that have none of their own choosing yet: safe, unique, the same every time.

A name is a spec's ``metadata.name`` and, with an ending, its file's. Names that differ in case
alone count as one: not every disk tells such files apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

_UNSAFE: Final = re.compile("[^A-Za-z0-9_.-]+")
#: room for an ending and a number within the 255 bytes that disks take
_LONGEST: Final = 200
#: Hive's name for "no database in particular": it tells nothing
_NO_DATABASE: Final = ("", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnamedTable:
    """A table that wants a name; ``table`` and ``database`` as its properties say."""

    location: str
    table: str
    database: str = ""


def choose_names(tables: Sequence[UnnamedTable], taken: Collection[str] = ()) -> Mapping[str, str]:
    """A name for every location, none of them taken.

    The table's own name, with its database's before it where it has one. Where that is taken or
    wanted by several, all of them are told apart by their folders, nearest first, and by a number
    when nothing else does.
    """
    found: dict[str, str] = {}
    used = {name.casefold() for name in taken}
    waiting = {table.location: _candidates(table) for table in tables}
    while waiting:
        wanted = {at: next(filter(None, names), None) for at, names in sorted(waiting.items())}
        counts = Counter(name.casefold() for name in wanted.values() if name is not None)
        for location, name in wanted.items():
            if name is None:
                folder = to_safe_name(location.rpartition("/")[2]) or "table"
                found[location] = _add_number(folder, used | counts.keys())
                used.add(found[location].casefold())
                del waiting[location]
            elif counts[name.casefold()] == 1 and name.casefold() not in used:
                found[location] = name
                used.add(name.casefold())
                del waiting[location]
    return found


def preferred_name(table: UnnamedTable) -> str:
    """The name that a table has where no other wants it."""
    return next(filter(None, _candidates(table)), "")


def to_safe_name(text: str) -> str:
    """The text as a name of letters, digits, ``.``, ``_`` and ``-``; "" where it has none of them.

    >>> to_safe_name("sales.orders"), to_safe_name("../../etc/passwd"), to_safe_name("_x"), to_safe_name("заказы"), to_safe_name("..")
    ('sales.orders', 'etc_passwd', '_x', '', '')
    """
    plain = _UNSAFE.sub("_", text)
    ends = ".-" if plain == text else "._-"
    return plain.strip(ends)[:_LONGEST].rstrip(ends)


def _candidates(table: UnnamedTable) -> Iterator[str]:
    named = [table.table] if table.database in _NO_DATABASE else [table.database, table.table]
    folders = [part for part in table.location.split("://")[-1].split("/") if part]
    yield _join_parts(named)
    if len(folders) > 1:
        yield _join_parts([folders[-2], table.table])
    for depth in range(2, len(folders) + 1):
        yield _join_parts(folders[-depth:])


def _join_parts(parts: Sequence[str]) -> str:
    """The parts with dots between them; "" where one of them is no name at all."""
    names = [to_safe_name(part) for part in parts]
    return to_safe_name(".".join(names)) if all(names) else ""


def _add_number(name: str, used: Collection[str]) -> str:
    return next(new for n in count(2) if (new := f"{name}-{n}").casefold() not in used)
