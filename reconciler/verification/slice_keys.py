"""Read the record keys of current file slices, log files included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.record_keys import read_record_keys
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.metadata.record_index import FileGroupLocation
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.slice_selection import SliceSelection, pick_slices
from reconciler.verification.checked_table import CheckedTable


@dataclass(frozen=True, kw_only=True, eq=False)
class SliceKeys:
    """Reads the keys of current file slices."""

    table: CheckedTable
    picked: SliceSelection
    options: SliceReadOptions

    @classmethod
    def open(cls, table: CheckedTable) -> SliceKeys:
        rules = MergeRules.from_properties(table.properties)
        wanted = dict.fromkeys(name.partition(".")[0] for name in rules.key_columns)
        options = SliceReadOptions(
            rules=rules,
            schema=table.columns.schema,
            committed=CommittedInstants.from_timeline(
                table.state.timeline, table_version=table.state.table_version
            ),
            columns=tuple(wanted),
        )
        return cls(table=table, picked=pick_slices(table.state), options=options)

    def __len__(self) -> int:
        return len(self.picked)

    def locate(self, at: int) -> FileGroupLocation:
        """Return partition path and file id of a slice."""
        files, group = self.picked.files, int(self.picked.group[at])
        return files.partitions[files.group_partition[group]], files.group_id[group].as_py()

    def read(self, at: int) -> Iterator[Any]:
        """Yield string arrays of the keys of a slice's rows; raises as ``read_slice``."""
        picked = self.picked
        base = int(picked.base[at])
        path, size = picked.files.locate_file(base) if base >= 0 else (None, 0)
        logs = [
            picked.files.locate_file(row)[0]
            for row in picked.logs[picked.ends[at] : picked.ends[at + 1]].tolist()
        ]
        files = SliceFiles(base=path, base_size=size, logs=tuple(logs))
        where = path or logs[0]
        for batch in read_slice(files, self.options, self.table.storage):
            yield read_record_keys(batch, self.options.rules, where)
