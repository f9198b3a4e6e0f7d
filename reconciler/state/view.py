"""The file slices of a table as it is, by the rules of its version; pure."""

from __future__ import annotations

from reconciler.hudi.instant import Action
from reconciler.hudi.view import View, build_view
from reconciler.state.model import TableState


def view_of(state: TableState) -> View:
    """The slices of a table, by the rules of its version."""
    return build_view(
        state.files,
        state.timeline,
        table_version=state.table_version,
        completions=state.completions,
        compactions={
            (operation.partition, operation.file_id): operation.instant
            for operation in state.compactions
            if operation.action is Action.COMPACTION
        },
        replaced=state.replaced,
        v6_completions=state.v6_completions if state.is_merge_on_read else None,
    )
