"""Find the scans of tables in the physical plan of a query; pure.

Sources: SparkPlanInfo, FileSourceScanExec and RowDataSourceScanExec of Spark; HoodieFileIndex and
HoodieBaseRelation of Hudi.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from reconciler.event_logs.read_schema import ColumnType, merge_types, parse_read_schema
from reconciler.lazy_dataclass import dataclass

#: hudi: of a Hudi table; incremental: of changes to one; files: of files that may be a table's
ScanKind = Literal["hudi", "incremental", "files"]

_LOCATION: Final = re.compile(r"(\w+)\([0-9]+ paths?\)\[(.*)\]", re.DOTALL)
_BASE_PATH: Final = re.compile(r"basePath='([^']+)'")
_TABLE_NAME: Final = re.compile(r"(?:\A|[ )])([\w$-]+(?:\.[\w$-]+)+) *\Z")
_READ_SCHEMA: Final = re.compile(r"^ReadSchema: (struct<.*>)$", re.MULTILINE)
_SESSION_CATALOG: Final = "spark_catalog."
_FILTER: Final = "Filter "
#: nodes between a scan and the filter of its rows
_WRAPPERS: Final = ("WholeStageCodegen", "InputAdapter", "ColumnarToRow")
_CACHE: Final = "InMemoryTableScan"
_SUBQUERY_COPY: Final = "SubqueryAdaptiveBroadcast"
_FILES, _BYTES = "number of files read", "size of files read"
#: nodes of a plan that are looked at
_MAX_NODES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """A scan of a table in the plan of a query.

    ``location`` as Hadoop writes it, None if the plan has none; ``name``: in the catalog.
    ``partition_filters``, ``data_filters``: texts of lists of conditions, "" if there is none.
    ``filters``: conditions of the rows right above the scan. Spark weakens what it pushes down as
    data filters if a condition also names partition columns. ``types``: of columns, as
    far as the plan has them. ``files_metric``, ``bytes_metric``: accumulators of what it read.
    ``identity``: equal for the same scan in another state of the plan. ``is_cached``: its rows are
    kept for later queries, whose plans have the scan too.
    """

    location: str | None
    name: str | None
    kind: ScanKind
    partition_filters: str = ""
    data_filters: str = ""
    filters: tuple[str, ...] = ()
    types: Mapping[str, ColumnType]
    columns: tuple[str, ...]
    files_metric: int | None = None
    bytes_metric: int | None = None
    identity: int
    is_cached: bool = False


def find_scans(plan: Any, description: str) -> tuple[TableScan, ...]:
    """Return the scans of tables in a ``sparkPlanInfo``; each once.

    ``description``: the plan as text, where some scans have their schema. Nodes of another shape
    are skipped.
    """
    shown = [parse_read_schema(text) for text in _READ_SCHEMA.findall(description)]
    types = merge_types(shown)
    found: dict[int, TableScan] = {}
    for node, filters, is_cached in _walk(plan):
        scan = _read_scan(node, filters, types, is_cached=is_cached)
        if scan is not None:
            found.setdefault(scan.identity, scan)
    return tuple(found.values())


def _walk(plan: Any) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...], bool]]:
    """Yield nodes, the filters right above each, and whether its rows are cached."""
    waiting: list[tuple[Any, tuple[str, ...], bool]] = [(plan, (), False)]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        node, filters, is_cached = waiting.pop()
        if not isinstance(node, dict) or not isinstance(node.get("nodeName"), str):
            continue
        yield node, filters, is_cached
        name, text = node["nodeName"], node.get("simpleString")
        if name.startswith(_SUBQUERY_COPY):  # the plan that runs has the same scan elsewhere
            continue
        if name == _FILTER.strip() and isinstance(text, str) and text.startswith(_FILTER):
            below = (*filters, text.removeprefix(_FILTER))
        else:
            below = filters if name.startswith(_WRAPPERS) else ()
        children = node.get("children")
        if isinstance(children, list):
            cached = is_cached or name.startswith(_CACHE)
            waiting += [(child, below, cached) for child in reversed(children)]


def _read_scan(
    node: Mapping[str, Any],
    filters: tuple[str, ...],
    types: Mapping[str, ColumnType],
    *,
    is_cached: bool,
) -> TableScan | None:
    name = node["nodeName"]
    if not name.startswith(("Scan ", "BatchScan ")):
        return None
    metrics = _read_metrics(node.get("metrics"))
    metadata = node.get("metadata")
    place = metadata.get("Location") if isinstance(metadata, dict) else None
    if not metrics:
        return None
    if isinstance(metadata, dict) and isinstance(place, str):
        scan = _read_file_scan(name, metadata, place, metrics)
        return scan and replace(scan, filters=filters, is_cached=is_cached)
    base = _BASE_PATH.search(name)
    if base is None:
        return None
    return TableScan(
        location=base[1],
        name=_find_table_name(name),
        kind="incremental" if "Incremental" in name.partition("(")[0] else "hudi",
        filters=filters,
        types=types,
        columns=_find_columns(node, types),
        identity=min(metrics.values()),
        is_cached=is_cached,
    )


def _read_file_scan(
    name: str,
    metadata: Mapping[str, Any],
    place: str,
    metrics: Mapping[str, int],
) -> TableScan | None:
    match = _LOCATION.fullmatch(place)
    if match is None:
        return None
    index, paths = match.groups()
    kind: ScanKind = "files"
    if index.startswith("Hoodie"):
        kind = "hudi" if index == "HoodieFileIndex" else "incremental"
    types = parse_read_schema(_get_text(metadata, "ReadSchema"))
    return TableScan(
        location=paths.removesuffix(", ...").partition(", file:/")[0],
        name=_find_table_name(name),
        kind=kind,
        partition_filters=_get_text(metadata, "PartitionFilters"),
        data_filters=_get_text(metadata, "DataFilters"),
        types=types,
        columns=tuple(types),
        files_metric=metrics.get(_FILES),
        bytes_metric=metrics.get(_BYTES),
        identity=min(metrics.values()),
    )


def _get_text(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _read_metrics(metrics: Any) -> dict[str, int]:
    if not isinstance(metrics, list):
        return {}
    pairs = [
        (metric.get("name"), metric.get("accumulatorId"))
        for metric in metrics
        if isinstance(metric, dict)
    ]
    return {
        name: number for name, number in pairs if isinstance(name, str) and isinstance(number, int)
    }


def _find_table_name(node_name: str) -> str | None:
    """Return the name of a table in a catalog, without that of Spark's own catalog.

    >>> _find_table_name("Scan parquet spark_catalog.sales.orders")
    'sales.orders'
    >>> _find_table_name("Scan parquet ")
    """
    match = _TABLE_NAME.search(node_name)
    return None if match is None else match[1].removeprefix(_SESSION_CATALOG)


def _find_columns(node: Mapping[str, Any], types: Mapping[str, ColumnType]) -> tuple[str, ...]:
    """Return the columns of a scan whose schema is known from the whole plan only."""
    text = node.get("simpleString")
    output = re.search(r"\[([^\[\]]*)\] PushedFilters", text) if isinstance(text, str) else None
    names = re.findall(r"([\w$@:-]+)#[0-9]+", output[1]) if output else ()
    return tuple(name for name in names if name in types)
