"""The newest writes of a table, for whoever looks at how big its files are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.load import load_properties
from reconciler.sizing.estimate import tells
from reconciler.sizing.groups import base_names, groups_of
from reconciler.state.evidence import Doubt, Writes
from reconciler.state.history import read_written
from reconciler.state.model import TableState
from reconciler.state.view import view_of
from reconciler.state.weighing import few_footers
from reconciler.storage.api import Storage

#: as many as a write's own estimate of a row looks at
_NEWEST: Final = 20


def with_writes(storage: Storage, state: TableState, *, weighs: bool = False) -> TableState:
    """The state with its newest writes: those that a clustering is judged by, else they are read.

    ``weighs``: with what a writer knows of how big rows are. Reads one small file each. What is
    damaged, or was archived meanwhile, is a doubt and stops no plan. Raises StorageError.
    """
    found = _newest(storage, state)
    if weighs and not tells(found.newest):
        view = view_of(state)
        found = replace(found, footers=few_footers(storage, groups_of(view), base_names(view)))
    return replace(state, writes=found)


def _newest(storage: Storage, state: TableState) -> Writes:
    if state.evidence is not None:
        return Writes(newest=state.evidence.written)
    try:
        properties = load_properties(storage)
        return Writes(newest=read_written(storage, properties, state.timeline, newest=_NEWEST))
    except (FormatError, NotFoundError) as problem:
        said = f"what wrote the files is not known, nor how big a row is: {problem}"
        return Writes(doubt=Doubt(rule="fileSizes", because=said))
