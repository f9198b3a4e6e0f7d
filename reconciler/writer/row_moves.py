"""Decide whether a write may move old rows from one file group to another."""

from __future__ import annotations

from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.table.properties import TableProperties
from reconciler.layout.sizing.assignment_rules import AssignmentRule, SteadyRule, restrict_moves
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.state.flink_writers import has_flink_writers
from reconciler.storage.api import Storage


def restrict_row_moves(
    rule: AssignmentRule, storage: Storage, properties: TableProperties, groups: FileGroupSizes
) -> AssignmentRule:
    """Return the rule with what it must know of other writers before rows move."""
    if not isinstance(rule, SteadyRule) or rule.tiers is None:
        return rule
    is_small = groups.is_live & (groups.base >= 0) & (groups.base < rule.sizes.small)
    if not is_small.any():
        return rule  # nothing to fill
    return restrict_moves(
        rule,
        has_flink_writers=has_flink_writers(storage),
        has_record_index=RECORD_INDEX in properties.metadata_partitions,
    )
