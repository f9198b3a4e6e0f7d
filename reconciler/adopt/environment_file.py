"""The file of an environment, to which locations of adopted tables are added.

Lines are added at the end of its list of tables, only if the result has the old content and the new
tables. Nothing else in the file changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.environment import FOLDER, Environment, read_environment
from reconciler.spec.schema import load_definition
from reconciler.spec.spec_files import YAML_ENDINGS, find_parent_folder
from reconciler.storage.local import LocalStorage
from reconciler.storage.locations import identify_place

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: line breaks of YAML that other programs do not know
_RARE_BREAKS: Final = ("\x85", "\u2028", "\u2029")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFile:
    """An environment that gets locations of tables; ``environment`` is None without a file yet.

    ``argument`` is the name or file that was given.
    """

    argument: str
    name: str
    file: Path
    environment: Environment | None

    @property
    def listed(self) -> Mapping[str, Any]:
        """The tables that the environment lists: their fields by name."""
        fields: Mapping[str, Any] = {}
        return fields if self.environment is None else self.environment.data.get("tables", fields)

    def find_name(self, location: str) -> str | None:
        """Return the name under which the environment lists a location, if it does."""
        return next((name for name in self.listed if self.is_listed(name, location)), None)

    def is_listed(self, name: str, location: str) -> bool:
        """Return whether the environment gives this location to the table with this name."""
        place = None if self.environment is None else self.environment.placement(name)
        return place is not None and identify_place(place.path).may_be(identify_place(location))

    def find_timezone(self, name: str) -> str | None:
        """Return the time zone that the environment gives to a table without one of its own."""
        if self.environment is None:
            return None
        listed = self.listed.get(name)
        own: str | None = listed.get("timezone") if isinstance(listed, Mapping) else None
        return own or self.environment.data.get("timezone")

    def add_tables(self, tables: Mapping[str, str]) -> Sequence[str]:
        """Add tables (path by name); return the lines to add by hand if that is not possible."""
        if not tables:
            return ()
        if self.environment is None:
            text: str | None = _new_environment_text(self.name, tables)
        else:
            text = add_tables_to_text(self.file.read_bytes().decode(), tables)
        if text is None:
            return _table_lines(tables, "    ")
        target = self.file.resolve()
        LocalStorage(str(target.parent)).replace(target.name, text.encode())
        return ()


def open_environment_file(name: str, specs: Path) -> EnvironmentFile:
    """Return the environment with a name, or at a path, for specs in a folder.

    Its file is where a plan would find it, or beside the specs if there is none yet. Raises
    SpecError with its problems.
    """
    if "/" in name or name.endswith(YAML_ENDINGS):
        file = Path(name)
    else:
        folder = find_parent_folder(specs, FOLDER) or specs.parent / FOLDER
        files = [folder / f"{name}{ending}" for ending in YAML_ENDINGS]
        file = next((file for file in files if file.exists()), files[0])
    if not file.exists():
        if not re.fullmatch(load_definition("name")["pattern"], file.stem):
            raise UsageError(f"--env {name}: {file.stem!r} is not a valid name of an environment")
        return EnvironmentFile(argument=name, name=file.stem, file=file, environment=None)
    known = read_environment(str(file.absolute()))
    return EnvironmentFile(argument=name, name=known.name, file=file, environment=known)


def add_tables_to_text(text: str, tables: Mapping[str, str]) -> str | None:
    """Return an environment's text with more tables; None if they cannot be added."""
    if any(mark in text for mark in _RARE_BREAKS):
        return None
    spec = _find_value(yaml.compose(text, Loader=_LOADER), "spec")
    listed = _find_value(spec, "tables")
    if _is_block_mapping(listed) and tables.keys().isdisjoint(
        name.value for name, _ in listed.value
    ):
        at, lines = _last_line(listed), _table_lines(tables, " " * _start_column(listed))
    elif listed is None and _is_block_mapping(spec):
        start = " " * _start_column(spec)
        at, lines = _last_line(spec), [f"{start}tables:", *_table_lines(tables, f"{start}  ")]
    else:
        return None
    ending = "\r\n" if "\r\n" in text else "\n"
    before = text.replace("\r\n", "\n").split("\n")
    more = ending.join([*before[: at + 1], *lines, *before[at + 1 :]])
    return more if _is_same_environment(more, text, tables) else None


def _is_same_environment(more: str, text: str, tables: Mapping[str, str]) -> bool:
    """Return whether the new text has the content of the old one and the new tables."""
    wanted: dict[str, Any] = yaml.load(text, Loader=_LOADER)  # noqa: S506 (a safe loader)
    wanted["spec"]["tables"] = {**(wanted["spec"].get("tables") or {}), **tables}
    try:
        document: object = yaml.load(more, Loader=_LOADER)  # noqa: S506
    except yaml.YAMLError:
        return False
    return document == wanted


def _new_environment_text(name: str, tables: Mapping[str, str]) -> str:
    lines = [
        "apiVersion: reconciler/v1",
        "kind: Environment",
        f"metadata: {{name: {json.dumps(name)}}}",
        "spec:",
        "  tables:",
        *_table_lines(tables, "    "),
    ]
    return "\n".join(lines) + "\n"


def _table_lines(tables: Mapping[str, str], start: str) -> list[str]:
    return [
        f"{start}{json.dumps(name)}: {json.dumps(path, ensure_ascii=False)}"
        for name, path in sorted(tables.items())
    ]


def _find_value(node: Any, key: str) -> Any:
    pairs: Iterable[tuple[Any, Any]] = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _is_block_mapping(node: Any) -> bool:
    """Return whether a mapping has each entry on a line of its own."""
    return isinstance(node, yaml.MappingNode) and not node.flow_style and bool(node.value)


def _start_column(node: Any) -> int:
    column: int = node.value[0][0].start_mark.column
    return column


def _last_line(node: Any) -> int:
    """Return the last line of a node; a block ends where the next node begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    line: int = node.end_mark.line
    return line - 1 if node.end_mark.column == 0 and line > node.start_mark.line else line
