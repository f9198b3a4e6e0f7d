"""Decide whether a write may move old rows from one file group to another."""

from __future__ import annotations

import numpy as np

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
    small_files = np.bincount(groups.partition[is_small], minlength=1)
    if small_files.max() < rule.tiers.max_small:
        return rule  # no row will move
    return restrict_moves(
        rule,
        has_flink_writers=has_flink_writers(storage),
        has_record_index=RECORD_INDEX in properties.metadata_partitions,
    )
