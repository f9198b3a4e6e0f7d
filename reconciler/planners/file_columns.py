"""Build the file columns of steps from rows of a table's files; pure."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.hudi.files.table_files import TableFiles
from reconciler.hudi.files.view import FileView
from reconciler.plans.columns import build_dictionary
from reconciler.plans.model import REMOVAL_RULES, RemovedFiles

_RETENTION: Final = REMOVAL_RULES.index("retention")
_REPLACED: Final = REMOVAL_RULES.index("replaced")


def name_columns(files: TableFiles, rows: Integers) -> dict[str, Any]:
    """Return the columns ``partition`` and ``name`` of some files."""
    return {
        "partition": build_dictionary(files.partition[rows], files.partitions),
        "name": files.name.take(to_arrow(rows)),
    }


def build_removed_files(view: FileView, rows: Integers, because: Any) -> RemovedFiles:
    """Return the files to remove; ``because``: a dictionary array with a sentence per file."""
    files, is_live = view.files, view.is_live[view.row_slice[rows]]
    return RemovedFiles(
        **name_columns(files, rows),
        bytes=files.size[rows],
        kind=files.kind[rows],
        rule=np.where(is_live, _RETENTION, _REPLACED).astype(np.int8),
        because=because,
    )
