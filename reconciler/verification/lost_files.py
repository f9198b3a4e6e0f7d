"""Find files that the metadata table lists, that are gone, and that a read of now needs; pure.

Where a clean was not listed, its files are gone rightly: a newer slice, or the replacement of their
group, makes up for them. Nothing makes up for a file of a current slice, and only the metadata
table and its commit know that it was there. Whether that commit has completed is asked elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.hudi.files.table_files import (
    FileKind,
    TableFiles,
    build_files,
    find_rows,
    make_present_keys,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.state.model import TableState


def find_lost_files(
    state: TableState, properties: TableProperties, listed: TableFiles, ghosts: Integers
) -> Mask:
    """Return per ghost whether readers would see it now if it were there.

    A base file of the same slice makes up for another one, which a retried task has written.
    ``ghosts``: rows of ``listed`` that are not in the folders of ``state``.
    """
    if not len(ghosts):
        return np.zeros(0, np.bool_)
    files = _add_rows(state.files, listed, ghosts, properties.base_extension)
    view = replace(state, files=files).view
    rows = find_rows(files, make_present_keys(listed))[ghosts]
    has_base = np.zeros(len(view), np.bool_)
    is_base = files.kind == FileKind.BASE
    is_ghost = np.zeros(len(files), np.bool_)
    is_ghost[rows] = True
    has_base[view.row_slice[is_base & ~is_ghost]] = True
    slices = view.row_slice[rows]
    lost: Mask = (
        view.is_current[slices]
        & (files.kind[rows] != FileKind.CDC)
        & ~(is_base[rows] & has_base[slices])
    )
    return lost


def _add_rows(
    present: TableFiles, listed: TableFiles, ghosts: Integers, base_extension: str
) -> TableFiles:
    """Return the files of the folders and the ghosts."""
    folders: dict[str, tuple[list[str], list[int]]] = {}
    for files, rows in ((present, np.arange(len(present))), (listed, ghosts)):
        codes, sizes = files.partition[rows].tolist(), files.size[rows].tolist()
        names = files.name.take(rows).to_pylist()
        for code, name, size in zip(codes, names, sizes, strict=True):
            in_folder, in_bytes = folders.setdefault(files.partitions[code], ([], []))
            in_folder.append(name)
            in_bytes.append(size)
    return build_files(((at, *names) for at, names in folders.items()), base_extension)
