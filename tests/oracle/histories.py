"""Random histories of merge-on-read tables: what is drawn, and real Hudi writing it.

A history is a shape (how the table is set up) and steps. A step that cannot be at that point of a
history (a compaction with nothing to compact, a rollback of the only write) upserts its rows
instead, so every list of steps is a history. After each step the table is copied as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from hypothesis import strategies as st

from reconciler.hudi.timeline.commit import CommitMetadata
from tests.oracle.hudi import NOTHING_BY_ITSELF, HudiTable, RealHudi, keep_commits
from tests.oracle.prepared_tables import copy_table

Merges = Literal["commit", "event", "overwrite"]
What = Literal[
    "upsert",
    "delete",
    "insert",
    "compact",
    "schedule compaction",
    "roll back",
    "break off",
    "clean",
    "cluster",
    "change columns",
]

#: event times from a small number
TIMES: Final = {
    "int": "cast({} as int)",
    "long": "3000000000 + {}",
    "string": "concat('t', {})",
    "double": "{} - 4.5D",
    "decimal": "cast({} - 4.5 as decimal(20, 4))",
    "timestamp": "timestamp_micros({} * 1000001)",
    "date": "date_add(date'2020-01-01', {})",
}
#: 1.0.2 cannot read its own tables ordered by one of these once they have deletions in their logs
BROKEN_IN_1_0_2: Final = frozenset({"long", "string", "double", "decimal", "timestamp"})
#: Hudi 1.2.0 orders log records of parquet blocks wrongly by text, so text goes with Avro blocks
TEXT: Final = "string"
#: the columns of a row beside key, partition and event time, by how often they were changed
COLUMNS: Final = (
    """if(v % 7 = 0, null, v) i, nullif(v * 5000000000, -1) l, nullif(concat('s', v), '') s,
    nullif(v / 3.0D, -1) d, cast(v * 1.25 as decimal(12, 3)) m,
    timestamp_micros(1700000000000000 + v * 1000001) t,
    if(v % 5 = 0, null, named_struct('a', v, 'b', array(concat('x', v), 'y'))) o""",
    ", nullif(concat('e', v), 'e0') e",
)
PAYLOADS: Final = {
    "overwrite": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "event": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
MODES: Final = {"commit": "COMMIT_TIME_ORDERING", "event": "EVENT_TIME_ORDERING"}
KEYS: Final = "abcdef"
#: steps, and how often each is drawn beside the others
WHATS: Final[tuple[tuple[What, int], ...]] = (
    ("upsert", 6),
    ("delete", 3),
    ("insert", 1),
    ("compact", 3),
    ("schedule compaction", 2),
    ("roll back", 2),
    ("break off", 2),
    ("clean", 1),
    ("cluster", 2),
    ("change columns", 1),
)


@dataclass(frozen=True, slots=True)
class Row:
    """``time`` and ``value`` make all columns; ``gone``: marked as deleted."""

    key: str
    time: int
    value: int
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    what: What
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a table is set up.

    ``ordering``: the type of the event time; ``flags``: rows may be marked as deleted; ``blocks``:
    what log files hold; ``pads_small_files``: inserts go to groups that there are;
    ``breaks_ties``: of equal event times, column ``l`` decides.
    """

    merges: Merges
    ordering: str
    partitioned: bool = False
    flags: bool = False
    index: str = "SIMPLE"
    blocks: str = "avro"
    pads_small_files: bool = False
    breaks_ties: bool = False

    def age(self, time: int, value: int) -> tuple[int, int]:
        """Compares as event times do."""
        return time, value if self.breaks_ties else 0

    def options(self, version: str) -> dict[str, str]:
        """Of every write of the table."""
        partition = "p" if self.partitioned else ""
        keys = "SimpleKeyGenerator" if self.partitioned else "NonpartitionedKeyGenerator"
        limit = {"hoodie.parquet.small.file.limit": str(100 << 20)} if self.pads_small_files else {}
        buckets = {"hoodie.bucket.index.num.buckets": "2"} if self.index == "BUCKET" else {}
        return {
            **NOTHING_BY_ITSELF,
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": partition,
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{keys}",
            "hoodie.metadata.enable": "false",
            "hoodie.write.markers.type": "DIRECT",
            # a write that was broken off here left no markers behind
            "hoodie.rollback.using.markers": "false",
            "hoodie.index.type": self.index,
            "hoodie.logfile.data.block.format": self.blocks,
            **limit,
            **buckets,
            **self._merging(version),
        }

    def _merging(self, version: str) -> dict[str, str]:
        by = "hoodie.datasource.write.precombine.field"
        if version >= "1.1":
            by = "hoodie.table.ordering.fields"
        if version < "1.0":
            return {by: "ts", "hoodie.datasource.write.payload.class": PAYLOADS[self.merges]}
        ordering = {by: "ts,l" if self.breaks_ties else "ts"} if self.merges == "event" else {}
        return {"hoodie.record.merge.mode": MODES[self.merges], **ordering}

    def query(self, rows: tuple[Row, ...], changes: int) -> str:
        """The rows as SQL; ``changes``: how often the columns were changed."""
        time = TIMES[self.ordering].format("r.time")
        partition = ", p" if self.partitioned else ""
        gone = ", gone _hoodie_is_deleted" if self.flags else ""
        listed = ", ".join(
            f"('{r.key}', 'p{ord(r.key) % 2}', {r.time}, {r.value}, {str(r.gone).lower()})"
            for r in rows
        )
        columns = "".join(COLUMNS[: changes + 1])
        return (
            f"select id{partition}, {time} ts, {columns}{gone} "
            f"from values {listed} as r(id, p, time, v, gone)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    version: str
    shape: Shape
    steps: tuple[Step, ...]


def histories(version: str) -> st.SearchStrategy[History]:
    """Histories that this version of Hudi can write and read.

    Hypothesis draws the seed alone: what it draws itself is small and alike for the first dozens
    of examples, and a dozen is what there is time for.
    """
    return st.randoms(use_true_random=True).map(lambda random: _history(version, random))


def _history(version: str, random: Random) -> History:
    def some(*choices: Any) -> Any:
        return random.choice(choices)

    ordering = some(*_orderings(version))
    is_text = ordering == TEXT
    # Hudi 1.x cannot write a row that is marked as deleted and has a date for its event time
    can_mark = version < "1.0" or ordering != "date"
    shape = Shape(
        merges=some(*(("event", "overwrite") if version < "1.0" else ("event", "event", "commit"))),
        ordering=ordering,
        partitioned=some(False, True),
        flags=some(False, True) and can_mark,
        index=some("SIMPLE", "BUCKET"),
        blocks=some("avro", "avro", "avro" if is_text else "parquet"),  # see `TEXT`
        pads_small_files=some(False, True),
        breaks_ties=some(False, False, version >= "1.1"),
    )

    def rows(least: int) -> tuple[Row, ...]:
        keys = random.sample(KEYS, random.randint(least, len(KEYS) - 1))
        gone = (False, False, shape.flags)
        return tuple(
            Row(key, random.randint(0, 9), random.randint(1, 40), some(*gone)) for key in keys
        )

    weights = [many if what != "cluster" or shape.index == "SIMPLE" else 0 for what, many in WHATS]
    whats = random.choices([what for what, _ in WHATS], weights, k=random.randint(6, 8))
    first = Step(some("insert", "upsert"), rows(3))
    return History(
        version=version, shape=shape, steps=(first, *(Step(what, rows(1)) for what in whats))
    )


def _orderings(version: str) -> list[str]:
    return sorted(TIMES.keys() - BROKEN_IN_1_0_2 if version == "1.0.2" else TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The table after a step, in a folder of its own.

    ``model``: key -> (time, value) where plain reasoning says what the table holds; else None.
    """

    step: Step
    done: str
    table: Path
    model: Mapping[str, tuple[int, int]] | None


@dataclass(slots=True)
class HistoryWriter:
    """Has real Hudi write a history."""

    hudi: RealHudi
    table: HudiTable
    shape: Shape
    #: whether a write that was broken off is rolled back before the next write, not by it
    tidies: bool = False
    changes: int = 0
    compaction: str | None = None
    #: the write that never completed, until a later one or a clean rolls it back
    broken_off: str = ""
    #: keys that were deleted, and the newest event time each had
    graves: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: keys that were ever written
    known: set[str] = field(default_factory=set)
    #: the completed writes since the last table service, oldest first, and what was before each
    before: list[tuple[str, dict[str, tuple[int, int]] | None]] = field(default_factory=list)
    model: dict[str, tuple[int, int]] | None = field(default_factory=dict)

    @classmethod
    def from_history(cls, hudi: RealHudi, history: History, folder: Path) -> HistoryWriter:
        options = history.shape.options(history.version)
        table = HudiTable(path=folder / "table", options=options)
        # where the next write does it, Hudi 0.15 loses that write's rows: a test of its own says it
        return cls(hudi, table, history.shape, tidies=history.version < "1.0")

    def write_steps(self, history: History) -> Iterator[Moment]:
        """Writes step by step; the moments are copies of the table."""
        for number, step in enumerate(history.steps):
            done = self._act(step) or self._write(step, "upsert")
            copy = self.table.path.with_name(f"moment-{number}")
            copy_table(self.table.path, copy)
            model = None if self.model is None else dict(self.model)
            yield Moment(step=step, done=done, table=copy, model=model)

    def _act(self, step: Step) -> str:
        """Does the step where it can be; what was done, "" for nothing."""
        acts: dict[What, Callable[[Step], str]] = {
            "insert": self._insert,
            "delete": lambda step: self._write(step, "delete") if self.before else "",
            "compact": lambda _: self._compact(),
            "schedule compaction": lambda _: self._schedule_compaction(),
            "roll back": lambda _: self._roll_back(),
            "break off": self._break_off,
            "clean": lambda _: self._clean(),
            "cluster": lambda _: self._cluster(),
            "change columns": lambda _: self._change_columns(),
        }
        return acts[step.what](step) if step.what in acts else ""

    def _change_columns(self) -> str:
        self.changes = min(self.changes + 1, len(COLUMNS) - 1)
        return ""

    def _write(self, step: Step, operation: str, rows: tuple[Row, ...] | None = None) -> str:
        rows = step.rows if rows is None else rows
        options = {**self.table.options, "hoodie.datasource.write.operation": operation}
        if self.broken_off and self.tidies:
            self.hudi.rollback(self.table, self.broken_off)
        query = self.shape.query(rows, self.changes)
        self.hudi.ask("write_query", table=self.table, query=query, options=options)
        self.before.append((self._newest(), None if self.model is None else dict(self.model)))
        self.broken_off = ""
        self.known |= {row.key for row in rows}
        for row in rows:
            self._expect(row, operation)
        return operation

    def _expect(self, row: Row, operation: str) -> None:
        """Follows in the model as far as that is plain."""
        if self.model is None:
            return
        merges = self.shape.merges
        none = (0, 0)
        newest = max(self.model.get(row.key, none), self.graves.get(row.key, none))
        is_late = self.shape.age(row.time, row.value) < self.shape.age(*newest)
        if operation == "delete":
            self.model.pop(row.key, None)
            self.graves[row.key] = newest
        elif merges == "event" and is_late and row.key not in self.graves and not row.gone:
            return
        elif merges != "commit" and (is_late or row.gone):
            # deletions with event times, late rows of deleted keys, overwriting: real Hudi says it
            self.model = None
        elif row.gone:
            self.model.pop(row.key, None)
        else:
            self.model[row.key] = (row.time, row.value)

    def _insert(self, step: Step) -> str:
        """Keys that were never there: of others an insert would make duplicates."""
        rows = tuple(row for row in step.rows if row.key not in self.known)
        return self._write(step, "insert", rows) if rows else ""

    def _clean(self) -> str:
        made = self.hudi.clean(self._served(), keep_commits(1))
        self.broken_off = ""
        return "clean" if made else ""

    def _compact(self) -> str:
        if self.compaction is None and not self._schedule_compaction():
            return ""
        assert self.compaction
        self.hudi.compact(self._served(), self.compaction)
        self.compaction = None
        self.before.clear()
        return "compact"

    def _schedule_compaction(self) -> str:
        if self.broken_off or self.compaction:
            return ""  # Hudi plans none while an older write is pending
        self.compaction = self.hudi.schedule(self._served(), "COMPACT")
        if self.compaction:
            self.before.clear()
        return "schedule compaction" if self.compaction else ""

    def _cluster(self) -> str:
        if self.broken_off:
            return ""
        table = self._served()
        made = self.hudi.schedule(table, "CLUSTER")
        if not made:
            return ""
        self.hudi.cluster(table, made)
        self.before.clear()
        if self.hudi.version < "1.0":
            self.model = None  # some of its clusterings bring deleted rows back
        return "cluster"

    def _roll_back(self) -> str:
        """The newest write, where a write came before it and no service after."""
        if len(self.before) < 2 or self.broken_off:
            return ""
        instant, self.model = self.before.pop()
        self.hudi.rollback(self.table, instant)
        return "roll back"

    def _break_off(self, step: Step) -> str:
        """A write that never completed: its files are there, its completion is not."""
        if not self.before:
            return ""
        self._write(step, "upsert")
        instant, self.model = self.before.pop()
        (completed,) = self._completions(instant)
        (self.table.timeline / completed).unlink()
        self.broken_off = instant
        return "break off"

    def _completions(self, instant: str) -> list[str]:
        pattern = rf"{instant}(_\d+)?\.(deltacommit|commit)"
        return [name for name in self.table.instants() if re.fullmatch(pattern, name)]

    def _newest(self) -> str:
        names = [n for n in self.table.instants() if re.fullmatch(r"\d+(_\d+)?\.deltacommit", n)]
        return re.split(r"[._]", max(names))[0]

    def _served(self) -> HudiTable:
        """The table for a service, which writes the columns that it is told of."""
        (name,) = self._completions(self._newest())
        data = (self.table.timeline / name).read_bytes()
        schema = CommitMetadata.parse(data, name).extra["schema"]
        said = {"hoodie.avro.schema": schema, "hoodie.write.schema": schema}
        return HudiTable(path=self.table.path, options={**self.table.options, **said})
