"""Columns that changed their name while files under the old one are still there; pure.

Source: SerDeHelper, InternalSchemaCache: what ``ALTER TABLE`` did is kept below ``.hoodie/.schema``
as every version of the table's schema, in which a column keeps its id whatever it is called. Files
are read by name here, so those that hold a column under another name are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from reconciler.hudi.codecs.avro_binary import decoding, require

#: where the versions are, and the key of a commit's extra metadata that says there are some
SCHEMA_FOLDER: Final = ".hoodie/.schema"
LATEST_SCHEMA_KEY: Final = "latest_schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    """A version of a table's schema: the path of each column and field by its id.

    ``since``: the instant from which on files are written with it, as a number.
    """

    since: int
    names: Mapping[int, str]

    @classmethod
    def parse(cls, schema: Mapping[str, Any]) -> Self:
        return cls(since=int(schema["version_id"]), names=dict(_list_fields(schema, "")))


def parse_schema_versions(data: bytes, path: str) -> tuple[SchemaVersion, ...]:
    """Every version, oldest first; raises FormatError naming ``path``."""
    with decoding(path, "the history of the schema"):
        schemas = json.loads(data)["schemas"]
        require(isinstance(schemas, list), "it lists no schemas")
        return tuple(sorted(map(SchemaVersion.parse, schemas), key=lambda version: version.since))


def find_renamed_columns(
    versions: tuple[SchemaVersion, ...], *, oldest: str, as_of: str
) -> dict[str, str]:
    """The columns as of an instant that files may hold under another name, and that name.

    ``oldest``: the instant of the oldest of the files that are read. A column that was dropped and
    made again counts too, under its own name: what the old files hold is not it.
    """
    seen = [version for version in versions if version.since <= int(as_of)]
    begin = max((v.since for v in seen if v.since <= int(oldest)), default=0)
    used = [version for version in seen if version.since >= begin]
    found: dict[str, str] = {}
    for version in used[:-1]:
        ids = {name: number for number, name in version.names.items()}
        for number, name in used[-1].names.items():
            if ids.get(name, number) != number:
                found[name] = name
            elif version.names.get(number, name) != name:
                found.setdefault(name, version.names[number])
    return found


def _list_fields(kind: Mapping[str, Any], path: str) -> Iterator[tuple[int, str]]:
    """Ids and paths of the fields of a type, and of those in them."""
    for field in kind.get("fields", ()):
        name = f"{path}{field['name']}"
        yield int(field["id"]), name
        yield from _list_nested_fields(field["type"], name)
    for part in ("element", "value"):
        yield from _list_nested_fields(kind.get(part), f"{path}{part}")


def _list_nested_fields(kind: Any, name: str) -> Iterator[tuple[int, str]]:
    if isinstance(kind, Mapping):
        yield from _list_fields(kind, f"{name}.")
