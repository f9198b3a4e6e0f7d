"""Find what keeps compactions of a table from being executed here, whoever planned them; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.errors import ReconcilerError
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.hudi.metadata.sync_decisions import decide_compaction_sync
from reconciler.hudi.table.properties import TableProperties
from reconciler.state.model import TableState

_PROPERTIES: Final = ".hoodie/hoodie.properties"


def find_file_obstacles(state: TableState) -> Iterator[str]:
    """Yield why files of the table cannot be written by a compaction."""
    properties = _get_properties(state)
    if properties.raw.get("hoodie.table.cdc.enabled", "").lower() == "true":
        yield (
            "the table keeps change logs (hoodie.table.cdc.enabled), which only Hudi's compactions "
            "write"
        )
    if properties.base_extension != ".parquet":
        yield f"its base files are {properties.base_extension} files"


def find_merge_obstacles(state: TableState) -> Iterator[str]:
    """Yield why rows of the table cannot be merged, or its metadata table cannot be updated."""
    properties = _get_properties(state)
    if refusal := MergeRules.from_properties(properties).refusal:
        yield refusal
    try:
        decide_compaction_sync(
            properties.metadata_partitions,
            table_version=properties.table_version,
            inflight=properties.metadata_partitions_inflight,
        )
    except ReconcilerError as error:
        yield str(error)


def _get_properties(state: TableState) -> TableProperties:
    return TableProperties.from_raw(state.properties, _PROPERTIES)
