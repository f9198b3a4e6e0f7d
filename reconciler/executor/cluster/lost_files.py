"""Which groups of a plan lack a file that a completed write has made, with a sentence each."""

from __future__ import annotations

from reconciler.hudi.table.properties import TableProperties
from reconciler.plans.groups import group_of_slices
from reconciler.plans.model import Rewrites
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.transaction.recovery.lost_files import REMEDY, FileGroup, find_lost_files


def explain_lost_files(
    storage: Storage, properties: TableProperties, state: TableState, groups: Rewrites
) -> dict[FileGroup, str]:
    """A sentence for every file group that has lost a file; reads and raises as ``find_lost_files``."""
    folders = groups.partition.to_pylist()
    names = zip(group_of_slices(groups).tolist(), groups.file_id.to_pylist(), strict=True)
    found = find_lost_files(storage, properties, state, [(folders[at], name) for at, name in names])
    return {
        group: f"its file {name} is gone, which a completed write made: {REMEDY}"
        for group, name in found.items()
    }
