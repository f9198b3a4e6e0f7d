"""Writes to tables with a record index: a key is in the table once, and the index says where.

``WRITE_HISTORIES=500`` draws as many.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.writer.request import WriteMode
from tests.laws.test_write_histories import LAW, History, Model, Step, shapes, steps
from tests.record_indexes import add_record_index, find_places, read_indexed_places
from tests.selection import rounds

#: a bucket index looks for no key: the same one in two folders is two rows
looked_up = shapes.map(lambda shape: replace(shape, buckets=None))


@dataclass
class Indexed(History):
    """A key is in one folder of the model; operations without a lookup get only new keys."""

    groups: int = 2
    live: tuple[str, ...] = ("files", "record_index")
    seen: set[str] = field(default_factory=set)

    def go(self, step: Step) -> None:
        was_there = self.is_there()
        super().go(self.told_apart(step))
        if self.is_there() and not was_there:
            add_record_index(self.spec.path, groups=self.groups)

    def told_apart(self, step: Step) -> Step:
        """Return the step without rows that would repeat a key."""
        if not self.is_there():  # as yet keys belong to partitions
            own = {self.key(self.row(0, *one)): one for one in step.rows}
            return replace(step, rows=tuple(own.values()))
        if step.way in (WriteMode.UPSERT, WriteMode.DELETE):
            return step
        rows = step.rows
        while True:
            drawn = [(one, self.row(0, *one)) for one in rows]
            paths = {path for path, _ in self.brought(step, [row for _, row in drawn])}
            gone = {
                WriteMode.INSERT_OVERWRITE: paths,
                WriteMode.INSERT_OVERWRITE_TABLE: {path for path, _ in self.model},
            }.get(step.way, set())
            stay = {key for path, key in self.model if path not in gone}
            kept = tuple(one for one, row in drawn if self.key(row) not in stay)
            if step.way is WriteMode.DELETE_PARTITION or kept == rows:
                return replace(step, rows=rows, dedupes=True)
            rows = kept

    def brought(self, _step: Step, rows: list[dict[str, Any]]) -> Model:
        found: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(self.key(row), []).append(row)
        self.seen |= found.keys()
        one = {key: self.newest(brought) for key, brought in found.items()}
        return {(self.path(row), key): [row] for key, row in one.items()}

    def expect(self, step: Step, rows: list[dict[str, Any]], partitions: list[str] | None) -> None:
        if step.way not in (WriteMode.UPSERT, WriteMode.DELETE):
            super().expect(step, rows, partitions)
            return
        places = {key: path for path, key in self.model}
        for (path, key), (new,) in self.brought(step, rows).items():
            before = places.get(key)
            if before is not None:
                (old,) = self.model[before, key]
                if step.way is WriteMode.UPSERT and self.newest([old, new]) is old:
                    continue
                del self.model[before, key]
            if step.way is WriteMode.UPSERT:
                self.model[path, key] = [new]

    def assert_rows(self) -> None:
        super().assert_rows()
        assert find_places(self.spec.path) == read_indexed_places(self.spec.path, sorted(self.seen))


@settings(LAW, max_examples=rounds("WRITE_HISTORIES", few=3, many=250))
@given(looked_up, st.lists(steps, min_size=1, max_size=5), st.integers(1, 3))
def test_key_is_in_the_table_once_at_its_indexed_location(shape, history, groups):
    with tempfile.TemporaryDirectory() as folder:
        table = Indexed(Path(folder), shape, groups=groups)
        for step in history:
            table.go(step)
            if table.is_there():
                table.assert_rows()
                table.assert_tidy()
