"""Find columns that were renamed while files with the old name still exist; pure.

Source: SerDeHelper, InternalSchemaCache. ``ALTER TABLE`` stores every version of the schema below
``.hoodie/.schema``, in which a column keeps its id when it is renamed. Files are read by column
name here, so files with an old name are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.lazy_dataclass import dataclass

#: folder of the versions, and the key of a commit's extra metadata that shows they exist
SCHEMA_FOLDER: Final = ".hoodie/.schema"
LATEST_SCHEMA_KEY: Final = "latest_schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    """A version of a table's schema: paths of columns and fields by their ids.

    ``since``: the instant, as a number, from which on files are written with it.
    """

    since: int
    names: Mapping[int, str]

    @classmethod
    def parse(cls, schema: Mapping[str, Any]) -> Self:
        return cls(since=int(schema["version_id"]), names=dict(_list_fields(schema, "")))


def parse_schema_versions(data: bytes, path: str) -> tuple[SchemaVersion, ...]:
    """Parse all versions, oldest first; raises FormatError naming ``path``."""
    with decoding(path, "the history of the schema"):
        schemas = json.loads(data)["schemas"]
        require(isinstance(schemas, list), "it has no list of schemas")
        return tuple(sorted(map(SchemaVersion.parse, schemas), key=lambda version: version.since))


def find_renamed_columns(
    versions: tuple[SchemaVersion, ...], *, oldest: str, as_of: str
) -> dict[str, str]:
    """Return columns as of an instant that files may have under another name, with that name.

    ``oldest``: instant of the oldest file that is read. A column that was dropped and added again
    is included with its own name, because old files have another column of that name.
    """
    visible = [version for version in versions if version.since <= int(as_of)]
    begin = max((v.since for v in visible if v.since <= int(oldest)), default=0)
    used = [version for version in visible if version.since >= begin]
    names: dict[str, str] = {}
    for version in used[:-1]:
        ids = {name: number for number, name in version.names.items()}
        for number, name in used[-1].names.items():
            if ids.get(name, number) != number:
                names[name] = name
            elif version.names.get(number, name) != name:
                names.setdefault(name, version.names[number])
    return names


def _list_fields(kind: Mapping[str, Any], path: str) -> Iterator[tuple[int, str]]:
    """Yield ids and paths of the fields of a type, with nested ones."""
    for field in kind.get("fields", ()):
        name = f"{path}{field['name']}"
        yield int(field["id"]), name
        yield from _list_nested_fields(field["type"], name)
    for part in ("element", "value"):
        yield from _list_nested_fields(kind.get(part), f"{path}{part}")


def _list_nested_fields(kind: Any, name: str) -> Iterator[tuple[int, str]]:
    if isinstance(kind, Mapping):
        yield from _list_fields(kind, f"{name}.")
