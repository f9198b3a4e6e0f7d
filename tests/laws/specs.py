"""Strategies for specs, generated from the published schema, so that they cover all it allows."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from reconciler import units
from reconciler.spec.rules import COUNTS, POLICY_BY_COUNT
from reconciler.spec.schema import Schema, find_block, load_definition

_WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12
)
_FORMATS = {
    "time-zone": st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
    "partition-pattern": st.sampled_from(["dt=2026-*", "a/b", "/dt=.*-0[13]/", "2026-01-01", "on"]),
    "partition-date": st.sampled_from(["lastCommit", "dt=%Y-%m-%d", "*/year=%Y/month=%m"]),
    "lock-folder": st.sampled_from([".hoodie", "locks/orders", "s3://locks/orders"]),
    "sql-condition": st.sampled_from(["a = 1", "b.c LIKE 'x%' OR f(d) > 1.5", "true"]),
    "date-or-time": st.sampled_from(
        ["2026-09-30", "2026-09-30T23:59Z", "2026-09-30 12:00:59.123", "2026-09-30T00:00:01+05:30"]
    ),
    "table-location": st.sampled_from(["../orders", "/lake/é/t", "s3://lake/orders/"]),
    "location-pattern": st.sampled_from(["../{name}", "s3://lake/{schema}/{table}"]),
    "time-span": st.integers(0, units.MAX_DURATION).map(units.format_duration),
    "storage-price": st.sampled_from(["0.023 USD/GB-month", "20USD/TiB-month"]),
    "scan-price": st.sampled_from(["5 USD/TB", "0.005 USD/GiB"]),
    "compute-price": st.sampled_from(["2 USD/TB", "0.05 USD/core-hour"]),
    "throughput": st.sampled_from(["13 MB/s", "20MiB/s"]),
    "run-rate": st.sampled_from(["40/day", "0.5 / month", "7/week", "2/hour"]),
    "percentage": st.decimals("0.001", 100, places=3).map(lambda percent: f"{percent}%"),
}
_TABLES = st.sampled_from(["t", "sales.orders", "a-b_c"])
_LOOSE = st.dictionaries(
    _WORDS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | _WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


def values(schema: Schema) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    """Return a strategy for the values of a schema."""
    if "anyOf" in schema:
        return st.one_of(*map(values, schema["anyOf"]))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("format") == "storage-options":
        return _mappings(schema)
    if find_block(schema) is not None:
        return _blocks_of(schema)
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if schema.get("format") == "byte-size":
        least, most = schema["minimum"], schema["maximum"]
        texts = st.integers(least, units.MAX_SIZE).map(units.format_size)
        return texts if least > most else st.integers(least, most) | texts
    return _plain_values(schema)


def _plain_values(schema: Schema) -> st.SearchStrategy[Any]:
    match schema["type"]:
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return st.floats(schema["minimum"], schema.get("maximum", 1e9)) | st.integers(1, 1)
        case "boolean":
            return st.booleans()
        case "array":
            is_named = "name" in schema["items"].get("properties", ())
            by = (lambda block: block["name"]) if is_named else str
            unique = by if is_named or schema.get("uniqueItems") else None
            least = schema.get("minItems", 0)
            return st.lists(values(schema["items"]), min_size=least, max_size=3, unique_by=unique)
        case "object":
            return _mappings(schema)
        case _:
            return _WORDS


def _mappings(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.get("format") in ("program-options", "storage-options"):
        prefix = "spark." if "spark" in schema["propertyNames"]["pattern"] else ""
        names = st.sampled_from([f"{prefix}region", f"{prefix}x.secret", f"{prefix}é"])
        references = st.fixed_dictionaries({"fromEnv": st.sampled_from(["A", "lake_KEY_1"])})
        return st.dictionaries(names, references, max_size=3)
    inner = schema.get("additionalProperties")
    if inner is None:
        return _LOOSE
    names = _WORDS if inner.get("type") == "string" else _TABLES
    return st.dictionaries(names, values(inner), max_size=3)


def _blocks_of(schema: Schema) -> st.SearchStrategy[Any]:
    if schema["properties"].keys() >= {"policy", *COUNTS}:
        return retentions(schema)
    return blocks(schema).filter(bool) if schema.get("minProperties") else blocks(schema)


def blocks(block: Schema) -> st.SearchStrategy[dict[str, Any]]:
    required = {name: values(block["properties"][name]) for name in block.get("required", ())}
    rest = {k: values(each) for k, each in block["properties"].items() if k not in required}
    return st.fixed_dictionaries(required, optional=rest).map(_agreeing)


@st.composite
def retentions(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    rest = {k: each for k, each in schema["properties"].items() if k not in COUNTS}
    found = draw(blocks({"properties": rest}))
    count = draw(st.sampled_from(COUNTS))
    found[count] = draw(values(schema["properties"][count]))
    if "policy" in found:
        found["policy"] = str(POLICY_BY_COUNT[count])
    return found


#: valid texts for the fields of a lock whose form the schema restricts
_LOCK_TEXTS: Final = {
    "table": "sales.orders",
    "uri": "thrift://host:9083",
    "servers": "zk1:2181,zk2:2181",
    "basePath": "/hudi/locks",
    "key": "orders",
    "region": "eu-central-1",
    "endpoint": "https://dynamodb.test",
}
#: fields without a default, by provider
_LOCK_NEEDS: Final = {
    "hivemetastore": ("table", "uri"),
    "zookeeper": ("servers", "basePath", "key"),
    "dynamodb": ("table", "partitionKey"),
}


def _complete_lock(block: dict[str, Any]) -> None:
    """Give the fields of a lock texts of their form, and add those that its provider needs."""
    texts = {name: text for name, text in _LOCK_TEXTS.items() if isinstance(block.get(name), str)}
    needs = _LOCK_NEEDS.get(str(block.get("provider")), ())
    block.update(texts, **{name: _LOCK_TEXTS.get(name, "orders") for name in needs})
    if block.get("implicit"):
        for derived in ("basePath", "key", "partitionKey"):
            block.pop(derived, None)
    if block.get("provider") == "filesystem" and "://" in block.get("path", ""):
        block["singleWriter"] = True  # no writer can take a lock file on an object store
    if "sessionTimeout" in block and units.parse_duration(block["sessionTimeout"]) < 1:
        block["sessionTimeout"] = "1s"


def _agreeing(block: dict[str, Any]) -> dict[str, Any]:
    """Return the block without fields that contradict another one."""
    if block.get("mapping") == "direct" and block.get("curve", "kd-tree") == "kd-tree":
        del block["mapping"]
    if "large" in block:  # it must exceed the target and twice the small size, also by default
        block.update(small="1B", target="1B", large="2B")
    if "validity" in block and units.parse_duration(block["validity"]) < 10:
        block["validity"] = "10s"  # no lock is taken for less
    if "olderThan" in block and units.parse_duration(block["olderThan"]) < 24 * 3600:
        block["olderThan"] = "1d"  # 0 deletes every partition, and orphans are older than a day
    if "recordKey" in block and block.get("index", {}).get("keys"):
        block["index"]["keys"] = block["recordKey"][-1:]
    _complete_lock(block)
    if "at" in block and "until" in block:  # a savepoint
        block["until"] = "2027-01-31"
    if isinstance(block.get("keep"), str):
        block["keep"] = "30..50"
    if "from" in block and "to" in block:
        block["from"], block["to"] = sorted((block["from"], block["to"]))
    return block


def table_specs() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the ``spec`` of valid HudiTables."""

    properties = load_definition("completeTable")["properties"]
    fields = {k: values(each) for k, each in properties.items() if k != "catalog"}  # or a path
    specs = st.fixed_dictionaries({"path": fields.pop("path")}, optional=fields)
    fitted = specs.map(_fit_lock_to_place).map(_fit_timeline_to_retention)
    return fitted.map(_fit_type_to_compaction)


def _fit_type_to_compaction(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with a table that has log files, if they are to be compacted."""
    if "compaction" in spec and "type" in spec.get("table", {}):
        spec["table"]["type"] = "MERGE_ON_READ"
    return spec


def _fit_timeline_to_retention(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with a timeline that keeps the commits of its retention, if it can."""
    commits = spec.get("retention", {}).get("commits", 0)
    if "timeline" in spec and commits >= 999_000:
        del spec["timeline"]
    elif "timeline" in spec:
        spec["timeline"]["keep"] = f"{commits + 1}..{commits + 1 + len(spec)}"
    return spec


def _fit_lock_to_place(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with a lock that writers can take where the table is.

    A new table of a spec that deletes partitions has some.
    """
    if "partitions" in spec.get("retention", {}) and "table" in spec:
        spec["table"].setdefault("partitionBy", []).append("day")
    lock, scheme = (spec.get("concurrency") or {}).get("lock"), spec["path"].partition("://")
    if lock and scheme[1]:
        if lock.get("provider") == "filesystem":
            lock["singleWriter"] = True
        if lock.get("provider") == "storage" and scheme[0] not in {"s3", "s3a"}:
            lock["provider"] = "none"
    return spec
