"""Conversion between effective specs, checked data, and the JSON document that a plan carries.

The document is complete, stable and free of credentials. Defaults of declared blocks are filled in,
sizes are bytes, and durations have the largest unit that divides them. It is the table's ``spec``
with a resolved ``path``, plus ``labels``, ``owner`` and ``storageOptions``. Secrets are names of
variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Final

from reconciler import canonical_json, units
from reconciler.errors import Problems, SourcePosition, quote_value
from reconciler.spec.model import (
    ClusteringTrigger,
    FileSizes,
    FromEnv,
    Retention,
    SizeTrigger,
    TableSpec,
)
from reconciler.spec.rule_block import Block
from reconciler.spec.rules import (
    COUNT_BY_POLICY,
    DEFAULT_CURVE,
    POLICY_BY_COUNT,
    SIZES_OF_EXISTING_FILES,
    check_rules,
    find_large,
)
from reconciler.spec.schema import Schema, load_definition
from reconciler.spec.structure import read_structure
from reconciler.spec.timeline_rules import COMMITS_WORD
from reconciler.spec.yaml_nodes import MappingNode, from_plain

Data = Mapping[str, Any]

#: how a document writes values with a unit, by attribute
_FORMATS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "max_scan": units.format_percent,
    "older_than": units.format_duration,
    "longest_query": units.format_duration,
    "max_lag": units.format_duration,
    "stale_after": units.format_duration,
    "heartbeat_timeout": units.format_duration,
    "after": units.format_duration,
    "validity": units.format_duration,
    "session_timeout": units.format_duration,
    "quiet": units.format_duration,
}
#: attributes that a document omits if they are empty
_OPTIONAL: Final = (
    "single_writer",
    "implicit",
    "labels",
    "options",
    "queries",
    "storage_options",
    "partitions",
    "include",
    "exclude",
    "incremental_consumers",
    "keys",
)
#: conditions of ``clustering.when``; a spec that names one has only those that it names
_CONDITIONS: Final = ("smallFileShareAbove", "overlapAbove", "gainAbove")
_NOT_IN_DOCUMENT: Final = (
    "name",
    "source",
    "provenance",
    "document",
    "guarded_by",
    "partition_retention",
    "prices",
)


def spec_from_document(document: Data, name: str, path: str) -> TableSpec:
    """Return the spec of a plan's table; the inverse of ``spec_to_document``.

    ``source``, ``provenance`` and ``guarded_by`` are not in a document, so they are empty. Raises
    SpecError for a document that ``spec_to_document`` cannot have made.
    """
    problems = Problems()
    place = SourcePosition(f"plan of {name}")
    declared = {key: value for key, value in document.items() if key != "path"}
    if document.get("path") != path:
        quoted = quote_value(document.get("path"))
        problems.error(place, "spec.path", f"is {quoted}, but the table's path is {path}")
    node = from_plain(declared, place)
    data = read_structure(node, _document_schema(), problems)
    if isinstance(node, MappingNode):
        check_rules(Block(problems, data, node))
    problems.raise_errors()
    return replace(build_spec(data, name=name, path=path), document=dict(document))


@cache
def _document_schema() -> Schema:
    """Build the schema of an effective spec without its path: table, metadata and options."""
    table, metadata = load_definition("completeTable"), load_definition("metadata")
    stores, options = load_definition("storageOptions"), load_definition("options")
    known = {**metadata["properties"], **table["properties"], "storageOptions": stores}
    catalog = known["catalog"]
    known["catalog"] = {**catalog, "properties": {**catalog["properties"], "options": options}}
    del known["name"], known["path"]
    return {**table, "properties": _allow_plain_sizes(known)}


def _allow_plain_sizes(schema: Any) -> Any:
    """Return a schema whose sizes may be numbers of bytes, as documents have them."""
    if isinstance(schema, list):
        return [_allow_plain_sizes(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    allowed = {key: _allow_plain_sizes(value) for key, value in schema.items()}
    is_size = allowed.get("format") == "byte-size"
    return {**allowed, "maximum": units.MAX_SIZE} if is_size else allowed


def spec_to_document(spec: TableSpec) -> dict[str, Any]:
    """Return a spec as JSON data: everything that decides what is done to the table."""
    document = _encode_fields(spec, *_NOT_IN_DOCUMENT)
    if spec.partition_retention is not None:
        partitions = _encode_fields(spec.partition_retention)
        document["retention"] = {**document.get("retention", {}), "partitions": partitions}
    return document


def _encode_fields(block: Any, *hidden: str) -> dict[str, Any]:
    """Return the declared fields of a block by their names in spec files."""
    encoded_fields = {}
    for name, key in _field_names(block.__class__):
        if (value := getattr(block, name)) is None or name in hidden:
            continue
        encoded = _FORMATS.get(name, _encode_value)(value)
        if encoded is not None and (encoded or name not in _OPTIONAL):
            encoded_fields[key] = encoded
    return encoded_fields


def _encode_value(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else _encode_parts(value)


def _encode_parts(value: Any) -> Any:
    match value:
        case tuple():
            return [_encode_value(item) for item in value]
        case Mapping():
            return {name: _encode_value(item) for name, item in value.items()}
        case FromEnv():
            return {"fromEnv": value.variable}
        case Retention():
            count = {"policy": str(value.policy), COUNT_BY_POLICY[value.policy]: value.keep}
            return count | _encode_fields(value, "policy", "keep")
        case ClusteringTrigger():
            return "always" if value.always else _encode_fields(value, "always")
        case _:
            hidden = ("target", "small") if _leaves_existing_files(value) else ()
            return _encode_fields(value, *hidden) if is_dataclass(value) else value


def _leaves_existing_files(value: Any) -> bool:
    """Return whether these are file sizes for new rows alone: a size would declare more."""
    return isinstance(value, FileSizes) and value.when is None


@cache
def _field_names(kind: Any) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a block, each with its name in spec files."""
    return tuple((field.name, _spell_field(field.name)) for field in fields(kind))


def _spell_field(attribute: str) -> str:
    first, *others = attribute.split("_")
    return first + "".join(map(str.capitalize, others))


def build_spec(data: Data, *, name: str, path: str) -> TableSpec:
    """Return the spec of data without structural errors or broken rules."""
    blocks = {**data, "name": name, "path": path}
    if "retention" in data:
        blocks |= _split_retention(data["retention"])
    if "timeline" in data:
        blocks["timeline"] = {"keep": data["timeline"]["keep"].removesuffix(COMMITS_WORD).rstrip()}
    if "clustering" in data:
        blocks["clustering"] = _fill_clustering(data["clustering"])
    if "when" in data.get("files", {}):
        when = {"smallFileShareAbove": None, "largeFiles": False, **data["files"]["when"]}
        blocks["files"] = {**data["files"], "when": when}
    return canonical_json.from_document(TableSpec, blocks)


def fill_sizes(data: Data) -> Data:
    """Return a declared spec with the defaults of file sizes for existing files, if it has any.

    ``assign`` and ``recordSize`` alone concern only new rows.
    """
    files = data.get("files")
    if files is None or not any(name in files for name in SIZES_OF_EXISTING_FILES):
        return data
    target = files.get("target", FileSizes().target)
    defaults = {"large": find_large(target), "budget": {}, "when": _encode_fields(SizeTrigger())}
    return {**data, "files": {**defaults, **files}}


def _split_retention(retention: Data) -> dict[str, Any]:
    """Return the retention of file slices with the policy of its count, and that of partitions."""
    slices = {key: value for key, value in retention.items() if key != "partitions"}
    count = next((count for count in POLICY_BY_COUNT if count in slices), None)
    named = None
    if count is not None:
        named = {**slices, "policy": POLICY_BY_COUNT[count], "keep": slices[count]}
    return {"retention": named, "partitionRetention": retention.get("partitions")}


def _fill_clustering(clustering: Data) -> Data:
    """Return a clustering with defaults: a curve, and no condition that ``when`` does not have."""
    filled = {**({"curve": DEFAULT_CURVE} if clustering["columns"] else {}), **clustering}
    if "when" in filled:
        given = {"always": True} if filled["when"] == "always" else filled["when"]
        filled["when"] = dict.fromkeys(_CONDITIONS) | given
    return filled
