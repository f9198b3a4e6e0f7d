"""Choose the log file that a write appends to a file slice: its name and its number.

Before version 8 a log file carries the instant that began its slice, and the next number in it.
From version 8 on it carries the instant of its write. Updates of a slice that a pending compaction
will rewrite go to the slice that begins with the compaction. Source: HoodieAppendHandle.init,
HoodieLogFormat.WriterBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.file_slices.log_file.write_stat import AppendedSlice
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView, find_group_codes
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTarget:
    """The log file that one bucket writes; picklable.

    ``instant``: in its name; ``version``: its number. ``appended``: the slice that it joins.
    ``base_instant``: of the base file that its changes refer to, None if there is none.
    ``has_slice``: False for the first file of a new file group.
    """

    file_id: str
    instant: str
    version: int
    appended: AppendedSlice
    base_instant: str | None = None
    has_slice: bool = True

    def make_name(self, token: str) -> str:
        """Return the name; ``token``: a text that no other attempt at any write has.

        >>> target = LogTarget(file_id="f-0", instant="20260101000000000", version=3,
        ...     appended=AppendedSlice(start="20260101000000000"))
        >>> target.make_name("1-0-2")
        '.f-0_20260101000000000.log.3_1-0-2'
        """
        return LogName(
            file_id=self.file_id,
            instant=self.instant,
            version=self.version,
            token=token,
            is_cdc=False,
        ).text


def make_new_target(file_id: str, instant: str) -> LogTarget:
    """Return the first log file of a new file group; ``instant``: of its write."""
    slice_ = AppendedSlice(start=instant)
    return LogTarget(file_id=file_id, instant=instant, version=1, appended=slice_, has_slice=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogTargets:
    """Finds the log files of a write in a table as it was observed."""

    view: FileView
    groups: FileGroupSizes
    table_version: int

    def find(self, groups: Sequence[int], instant: str) -> dict[int, LogTarget]:
        """Return the log file for each of some file groups; ``instant``: of the pending write."""
        if self.table_version >= LOGS_BY_COMPLETION:
            return {group: self._target_of_write(group, instant) for group in groups}
        return dict(self._find_numbered(groups))

    def _target_of_write(self, group: int, instant: str) -> LogTarget:
        target = make_new_target(self.groups.get_file_id(group), instant)
        base_instant = self._get_base_instant(group)
        return replace(target, base_instant=base_instant, has_slice=True)

    def _get_base_instant(self, group: int) -> str | None:
        if self.groups.base[group] < 0:
            return None
        base = BaseName.parse(str(self.groups.base_name[group]))
        return None if base is None else base.instant

    def _find_numbered(self, groups: Sequence[int]) -> Iterable[tuple[int, LogTarget]]:
        """Yield each group with the next log file of its newest slice."""
        view, sizes = self.view, self.groups
        pairs = [(sizes.get_partition(group), sizes.get_file_id(group)) for group in groups]
        codes = find_group_codes(view.files, pairs)
        newest = np.full(len(view.files.group_partition), -1, np.int64)
        is_newest = view.is_visible & (view.rank == 0)
        newest[view.group[is_newest]] = np.flatnonzero(is_newest)
        slices = newest[codes].tolist()
        names = self._list_names(slices)
        for group, number, (_, file_id) in zip(groups, slices, pairs, strict=True):
            start = view.times[view.key[number]]
            logs = [log for name in names[number] if (log := LogName.parse(name)) is not None]
            bases = [name for name in names[number] if BaseName.parse(name) is not None]
            has_base = bool(bases) and not view.is_phantom[number]
            appended = AppendedSlice(
                start=start,
                base_name=max(bases) if has_base else "",
                logs=tuple(
                    log.text for log in sorted(logs, key=lambda log: log.order) if not log.is_cdc
                ),
            )
            version = max((log.version for log in logs), default=0) + 1
            yield (
                group,
                LogTarget(file_id=file_id, instant=start, version=version, appended=appended),
            )

    def _list_names(self, slices: Sequence[int]) -> dict[int, list[str]]:
        """Return the names of the files of some slices."""
        names: dict[int, list[str]] = {number: [] for number in slices}
        rows = np.flatnonzero(np.isin(self.view.row_slice, slices))
        listed = self.view.files.name.take(to_arrow(rows)).to_pylist()
        for number, name in zip(self.view.row_slice[rows].tolist(), listed, strict=True):
            names[number].append(name)
        return names
