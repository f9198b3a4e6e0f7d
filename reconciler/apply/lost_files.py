"""Which groups of a plan lack a file that a completed write has made, with a sentence each."""

from __future__ import annotations

from reconciler.hudi.properties import TableProperties
from reconciler.plan.groups import owners
from reconciler.plan.model import Rewrites
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.transaction.lost import REMEDY, FileGroup, lost_of


def lost_files(
    storage: Storage, properties: TableProperties, state: TableState, groups: Rewrites
) -> dict[FileGroup, str]:
    """A sentence for every file group that has lost a file; reads and raises as ``lost_of``."""
    folders = groups.partition.to_pylist()
    names = zip(owners(groups).tolist(), groups.file_id.to_pylist(), strict=True)
    found = lost_of(storage, properties, state, [(folders[at], name) for at, name in names])
    return {
        group: f"its file {name} is gone, which a completed write made: {REMEDY}"
        for group, name in found.items()
    }
