"""A table whose metadata is verified, and the files that are chosen for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Final

import numpy as np

from reconciler.arrays import Codes, Integers, Mask
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.table import MetadataTable, open_live_metadata
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import find_newest_bases, find_newest_logs
from reconciler.state.index_state_reader import TableColumns
from reconciler.state.model import TableState
from reconciler.storage.api import Storage

#: threads that read from a remote store, where each read waits for the network
_REMOTE_THREADS: Final = 16
_HASHES: Final = 1 << 64

#: called with the number of things that were compared since the last call
Advance = Callable[[int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedTable:
    """A table at the moment of ``state``. ``sample``: the share of its file groups to look at."""

    storage: Storage
    properties: TableProperties
    state: TableState
    sample: float = 1.0

    @classmethod
    def open(cls, storage: Storage, state: TableState, sample: float) -> CheckedTable:
        """Read the properties of a table that was just observed. Raises as ``load_properties``."""
        properties = load_properties(storage)
        return cls(storage=storage, properties=properties, state=state, sample=sample)

    @property
    def parallelism(self) -> int:
        """The number of files to read at a time; on a local disk threads only cost time."""
        return _REMOTE_THREADS if "://" in self.storage.location else 1

    @cached_property
    def metadata(self) -> MetadataTable:
        """The open metadata table, of a table that has one."""
        return open_live_metadata(self.storage, self.properties, self.state.timeline)

    @cached_property
    def bases(self) -> Integers:
        """The chosen base files of current slices, as ascending rows of the state's files."""
        rows = find_newest_bases(self.state.view)
        chosen: Integers = rows[self.is_chosen(rows)]
        return chosen

    @cached_property
    def logs(self) -> Integers:
        """The log files of current slices, as ascending rows of the state's files."""
        return find_newest_logs(self.state.view)

    @cached_property
    def columns(self) -> TableColumns:
        """The table's columns as readers see them."""
        files = find_newest_bases(self.state.view)
        return TableColumns.read(self.storage, self.properties, self.state, files)

    @cached_property
    def _is_chosen_group(self) -> Mask:
        """Per file group, whether it is in the sample; another write chooses other groups."""
        files = self.state.files
        if self.sample >= 1:
            return np.ones(len(files.group_partition), np.bool_)
        seed = (self.state.timeline.newest_time or "").encode()
        limit = int(self.sample * _HASHES)
        chosen = [
            int.from_bytes(blake2b(seed + file_id.encode(), digest_size=8).digest(), "big") < limit
            for file_id in files.group_id.to_pylist()
        ]
        return np.array(chosen, np.bool_)

    def is_chosen(self, rows: Integers) -> Mask:
        """Return a mask of files whose file groups are in the sample."""
        return self.is_chosen_group(self.state.files.group[rows])

    def is_chosen_group(self, groups: Codes) -> Mask:
        """Return a mask of file groups that are in the sample."""
        mask: Mask = self._is_chosen_group[groups]
        return mask

    def name_file(self, row: int) -> tuple[str, str]:
        """Return partition path and name of a file."""
        files = self.state.files
        return files.partitions[files.partition[row]], files.name[int(row)].as_py()
