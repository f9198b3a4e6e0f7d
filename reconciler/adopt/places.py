"""Where adopted tables are, in an environment's file: read before, and more tables listed after.

People's files are edited by whole lines at the end of the list, and only where the outcome reads as
it did before and the new tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from reconciler.errors import UsageError
from reconciler.spec.environment import FOLDER, Environment, read_environment
from reconciler.spec.locations import identity
from reconciler.spec.project import found_above
from reconciler.spec.words import NAME_PATTERN
from reconciler.storage.local import LocalStorage

_ENDINGS: Final = (".yaml", ".yml")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: lines end here for YAML and not for everybody
_RARE_BREAKS: Final = ("\x85", "\u2028", "\u2029")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """An environment that is to know where tables are; ``known`` is None while it has no file.

    ``chosen`` is what people call it by: its name, or its file.
    """

    chosen: str
    name: str
    file: Path
    known: Environment | None

    def name_at(self, location: str) -> str | None:
        """The name that the environment lists a location under, if it does."""
        if self.known is None:
            return None
        listed = self.known.data.get("tables", {})
        return next((name for name in listed if self.has(name, location)), None)

    def has(self, name: str, location: str) -> bool:
        """Whether the environment says that the table of that name is there."""
        found = None if self.known is None else self.known.placement(name)
        return found is not None and identity(found.path) == identity(location)

    def zone_of(self, name: str) -> str | None:
        """The zone that the environment gives to a table of that name without one of its own."""
        if self.known is None:
            return None
        listed = self.known.data.get("tables", {}).get(name)
        own: str | None = listed.get("timezone") if isinstance(listed, Mapping) else None
        common: str | None = self.known.data.get("timezone")
        return own or common

    @property
    def listed(self) -> frozenset[str]:
        return frozenset(() if self.known is None else self.known.data.get("tables", {}))

    def add(self, tables: Mapping[str, str]) -> Sequence[str]:
        """List more tables, path by name; the lines that people must add, where that cannot be."""
        if not tables:
            return ()
        if self.known is None:
            self._write(_fresh(self.name, tables))
            return ()
        more = with_tables(self.file.read_bytes().decode(), tables)
        if more is None:
            return _lines(tables, "    ")
        self._write(more)
        return ()

    def _write(self, text: str) -> None:
        target = self.file.resolve()
        LocalStorage(str(target.parent)).replace(target.name, text.encode())


def places_of(name: str, specs: Path) -> Places:
    """The environment of a name, or of a path, for specs in a folder.

    It is where a plan would find it, or beside the specs where it is not there yet. Raises
    SpecError for what is wrong with it.
    """
    if "/" in name or name.endswith(_ENDINGS):
        file = Path(name)
    else:
        folder = found_above(specs, FOLDER) or specs.parent / FOLDER
        file = next(
            (at for ending in _ENDINGS if (at := folder / f"{name}{ending}").exists()),
            folder / f"{name}.yaml",
        )
    if not file.exists():
        if not re.fullmatch(NAME_PATTERN, file.stem):
            raise UsageError(f"--env {name}: {file.stem!r} is no name for an environment")
        return Places(chosen=name, name=file.stem, file=file, known=None)
    known = read_environment(str(file.absolute()))
    return Places(chosen=name, name=known.name, file=file, known=known)


def with_tables(text: str, tables: Mapping[str, str]) -> str | None:
    """An environment's text with more tables at the end of its list; None where that cannot be."""
    if any(mark in text for mark in _RARE_BREAKS):
        return None
    spec = _value(yaml.compose(text, Loader=_LOADER), "spec")
    listed = _value(spec, "tables")
    if _is_block(listed) and tables.keys().isdisjoint(name.value for name, _ in listed.value):
        at, lines = _end(listed), _lines(tables, " " * _column(listed))
    elif listed is None and _is_block(spec):
        start = " " * _column(spec)
        at, lines = _end(spec), [f"{start}tables:", *_lines(tables, f"{start}  ")]
    else:
        return None
    ending = "\r\n" if "\r\n" in text else "\n"
    before = text.replace("\r\n", "\n").split("\n")
    more = ending.join([*before[: at + 1], *lines, *before[at + 1 :]])
    return more if _reads_as(more, text, tables) else None


def _reads_as(more: str, text: str, tables: Mapping[str, str]) -> bool:
    """Whether the new text says what the old one did, and where the tables are."""
    wanted: dict[str, Any] = yaml.load(text, Loader=_LOADER)  # noqa: S506 (a safe loader)
    wanted["spec"]["tables"] = {**(wanted["spec"].get("tables") or {}), **tables}
    try:
        found: object = yaml.load(more, Loader=_LOADER)  # noqa: S506
    except yaml.YAMLError:
        return False
    return found == wanted


def _fresh(name: str, tables: Mapping[str, str]) -> str:
    lines = [
        "apiVersion: reconciler/v1",
        "kind: Environment",
        f"metadata: {{name: {json.dumps(name)}}}",
        "spec:",
        "  tables:",
        *_lines(tables, "    "),
    ]
    return "\n".join(lines) + "\n"


def _lines(tables: Mapping[str, str], start: str) -> list[str]:
    return [
        f"{start}{json.dumps(name)}: {json.dumps(path, ensure_ascii=False)}"
        for name, path in sorted(tables.items())
    ]


def _value(node: Any, key: str) -> Any:
    pairs: Iterable[tuple[Any, Any]] = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _is_block(node: Any) -> bool:
    """Whether a mapping has entries on lines of their own."""
    return isinstance(node, yaml.MappingNode) and not node.flow_style and bool(node.value)


def _column(node: Any) -> int:
    column: int = node.value[0][0].start_mark.column
    return column


def _end(node: Any) -> int:
    """The line of the last thing in a node; that of a block ends where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    line: int = node.end_mark.line
    return line - 1 if node.end_mark.column == 0 and line > node.start_mark.line else line
