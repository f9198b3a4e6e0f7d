"""List the log files of the file slices that readers see, before a write begins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reconciler.hudi.files.view import find_group_codes
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.reader.slice_selection import pick_slices
from reconciler.state.model import TableState
from reconciler.writer.slice_keys import SliceLogs


def list_slice_logs(state: TableState, groups: FileGroupSizes) -> Mapping[int, SliceLogs]:
    """Return the log files of each group that has some.

    The log files are those of the slice that readers see. ``groups``: those of the state.
    """
    picked = pick_slices(state)
    paths = [groups.get_partition(group) for group in range(len(groups))]
    codes = find_group_codes(
        picked.files, zip(paths, groups.file_id.to_pylist(), strict=True)
    ).tolist()
    number_of = {code: number for number, code in enumerate(codes)}
    logs: dict[int, SliceLogs] = {}
    for at in np.flatnonzero(picked.has_logs).tolist():
        rows = picked.logs[picked.ends[at] : picked.ends[at + 1]].tolist()
        group = number_of[int(picked.group[at])]
        located = [picked.files.locate_file(row) for row in rows]
        names, sizes = zip(*located, strict=True)
        logs[group] = SliceLogs(paths=names, sizes=sizes)
    return logs
