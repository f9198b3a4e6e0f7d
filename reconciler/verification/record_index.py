"""Compare record_index with the record keys in current file slices.

A key that is in several file groups has one location, which must be one of them. Entries of keys
that the table does not have are not looked for: they hide no row.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, to_arrow, to_numpy
from reconciler.errors import UnsupportedError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.metadata.record_index import (
    FileGroupLocation,
    RecordIndex,
    list_global_slices,
)
from reconciler.hudi.metadata.sync_decisions import MAX_RECORDS, RECORD_INDEX
from reconciler.lazy_dataclass import dataclass
from reconciler.state.metadata_differences import CheckBuilder
from reconciler.verification.checked_table import Advance, CheckedTable
from reconciler.verification.rebuild_obstacles import TOO_MANY_ROWS
from reconciler.verification.slice_keys import SliceKeys

#: keys that are looked up together; each lookup reads the log files of the index
_BATCH_KEYS: Final = 2_000_000
_MISSING: Final = "reads by key miss the row, and writers that look up keys here write it twice"
_OTHER: Final = "reads by key miss the row, and writers that look up keys here write it elsewhere"


def check_record_index(table: CheckedTable, advance: Advance) -> CheckBuilder:
    """Compare the location of every key of the chosen file groups.

    Raises FormatError, UnsupportedError, StorageError.
    """
    check = CheckBuilder(metadata_partition=RECORD_INDEX, unit="key")
    slices = list_global_slices(table.metadata)
    if slices is None:
        check.not_compared.append("an index per partition (hoodie.metadata.record.level.index)")
        return check
    index = RecordIndex(
        version=table.metadata.version,
        metadata_timeline=table.metadata.timeline,
        data_timeline=table.state.timeline,
        slices=slices,
    )
    _Comparison(table=table, index=index, keys=SliceKeys.open(table), check=check).run(advance)
    if check.compared > MAX_RECORDS:
        check.obstacle = TOO_MANY_ROWS
    return check


@dataclass(kw_only=True, eq=False)
class _Comparison:
    """``strays``: keys by the location that the index has for them, with their own slice."""

    table: CheckedTable
    index: RecordIndex
    keys: SliceKeys
    check: CheckBuilder
    strays: dict[FileGroupLocation, list[tuple[str, int]]] = field(default_factory=dict)

    def run(self, advance: Advance) -> None:
        waiting: list[Any] = []
        numbers: list[int] = []
        count = 0
        is_chosen = self.table.is_chosen_group(self.keys.picked.group)
        for at in np.flatnonzero(is_chosen).tolist():
            try:
                arrays = list(self.keys.read(at))
            except UnsupportedError as problem:
                self.check.not_compared.append(str(problem))
                self.check.obstacle = str(problem)
                continue
            waiting += arrays
            numbers += [at] * len(arrays)
            count += sum(map(len, arrays))
            if count >= _BATCH_KEYS:
                self._compare(waiting, numbers)
                waiting, numbers, count = [], [], 0
            advance(1)
        self._compare(waiting, numbers)
        self._settle_strays()

    def _compare(self, arrays: list[Any], numbers: list[int]) -> None:
        """Compare the locations of the keys of some slices."""
        if not arrays:
            return
        keys = pa.concat_arrays([array.cast(pa.large_string()) for array in arrays])
        slice_of = np.repeat(np.array(numbers, np.int64), [len(array) for array in arrays])
        self.check.compared += len(keys)
        encoded = keys.dictionary_encode()
        distinct, codes = encoded.dictionary, to_numpy(encoded.indices).astype(np.int64)
        found, locations = self._locate(distinct.cast(pa.string()))
        numbers_by_location = {self.keys.locate(at): at for at in set(numbers)}
        expected = np.array(
            [numbers_by_location.get(location, -1) for location in (*locations, ("", ""))], np.int64
        )
        is_missing = found[codes] < 0
        is_right = expected[found[codes]] == slice_of
        is_right_somewhere = np.zeros(len(distinct), np.bool_)
        is_right_somewhere[codes[is_right & ~is_missing]] = True
        for row in np.flatnonzero(is_missing).tolist():
            self._add(keys[row].as_py(), int(slice_of[row]), None)
        is_stray = ~is_missing & ~is_right & ~is_right_somewhere[codes]
        for row in np.flatnonzero(is_stray).tolist():
            location = locations[int(found[codes[row]])]
            self.strays.setdefault(location, []).append((keys[row].as_py(), int(slice_of[row])))

    def _locate(self, distinct: Any) -> tuple[Integers, list[FileGroupLocation]]:
        """Return per distinct key the number of its location, -1 without any, and all locations."""
        found = np.full(len(distinct), -1, np.int64)
        locations: dict[FileGroupLocation, int] = {}
        groups = self.index.find_groups(distinct)
        for group in np.unique(groups).tolist():
            rows = np.flatnonzero(groups == group)
            located = self.index.locate_keys(
                self.table.storage, group, distinct.take(to_arrow(rows))
            )
            numbers = [
                locations.setdefault(location, len(locations)) for location in located.locations
            ]
            if numbers:
                codes = np.array(numbers, np.int64)
                found[rows[located.key_index]] = codes[located.location_code]
        return found, list(locations)

    def _settle_strays(self) -> None:
        """Drop strays whose key is in their location too, as in tables with duplicate keys."""
        known = {self.keys.locate(at): at for at in range(len(self.keys))}
        for location, strays in self.strays.items():
            present: set[str] = set()
            at = known.get(location)
            if at is not None:
                wanted = pa.array([key for key, _at in strays], pa.string())
                for keys in self.keys.read(at):
                    here = keys.cast(pa.string())
                    present.update(here.filter(pc.is_in(here, value_set=wanted)).to_pylist())
            for key, own in strays:
                if key not in present:
                    self._add(key, own, location, is_live=at is not None)

    def _add(
        self, key: str, at: int, location: FileGroupLocation | None, *, is_live: bool = True
    ) -> None:
        partition, file_id = self.keys.locate(at)
        recorded = "no entry"
        if location is not None:
            gone = "" if is_live else ", which is no current file group"
            recorded = f"file group {make_file_path(*location)}{gone}"
        self.check.add(
            "missing" if location is None else "wrong",
            partition,
            file_id,
            key=key,
            recorded=recorded,
            actual="a row in this file group",
            effect=_MISSING if location is None else _OTHER,
        )
