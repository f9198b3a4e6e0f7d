"""Tables to be clustered, made by real Hudi in many shapes, and what they hold afterwards.

``Subject`` is such a table with a model of its rows. Rows are made of a key and a number: partition
and all columns follow from these two, so the model is ``{key: number}``, and a row that nobody
touched must read as it was, to the last bit, meta columns too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from reconciler.hudi.timeline.commit import CommitMetadata
from tests.oracle.answers import Answer, find_differences
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import (
    COMPACT_METADATA,
    FEW_GROUPS,
    INDEXES,
    NOTHING_BY_ITSELF,
    HudiTable,
    RealHudi,
    directory_listing,
)
from tests.oracle.kept_tables import KeptTable
from tests.oracle.prepared_tables import copy_table

Partitions = Literal["none", "plain", "hive", "encoded", "levels", "dropped"]
Metadata = Literal["off", "files", "all"]
Rows = Mapping[str, int]

#: all types of Hudi's tables, derived from ``v``; small values give dates before 1582
TYPES: Final = """, v % 2 = 0 b, if(v % 7 = 0, null, v) i, v * 5000000000L l,
    cast(if(v % 11 = 0, 'NaN', v / 3) as float) f, if(v % 9 = 0, -0.0D, v - 7.5D) dd,
    encode(concat('x', v), 'utf-8') bin, cast(v * 1.25 as decimal(7, 2)) d7,
    cast(v * 1000.125 as decimal(18, 3)) d18, cast(v * -1.1 as decimal(38, 10)) d38,
    date_add(if(v < 10, date'1500-03-01', date'1990-01-01'), v) dt,
    timestamp_micros(if(v < 10, -20000000000000123, 1700000000000123) + v * 70000000001) t,
    array(v, v + 1) a, array(array(concat('a', v)), array()) aa,
    array(named_struct('x', v, 'y', 'z')) ra, map('a', 1, 'b', v) m,
    map('q', map('w', array(v / 2.0D))) mm,
    named_struct('a', v, 'b', named_struct('c', date'2020-01-01', 'd', cast(v as decimal(5, 1)))) st
"""
#: a column that later writes add; not all versions support one inside a struct
ADDED: Final = ", nullif(concat('e', v), 'e0') e"
#: options of a reader with data skipping: metadata table on
BY_LISTING: Final = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
SKIPPING: Final = {
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
METADATA: Final = SKIPPING | {"hoodie.enable.data.skipping": "false"}
#: a pending clustering is rolled back when rows of its groups are updated
CLUSTERING_GIVES_WAY: Final = {
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    ),
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
OLD_DATES: Final = (
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.avro.datetimeRebaseModeInWrite",
    "spark.sql.avro.datetimeRebaseModeInRead",
)
_KEYS: Final = "org.apache.hudi.keygen."
_COMPLETED: Final = re.compile(r"(\d+)(?:_(\d+))?\.(commit|deltacommit|replacecommit)")
_NOT_KEPT: Final = "_hoodie_file_name"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a table is set up, and how it is declared to be clustered.

    ``metadata``: the metadata table's partitions; ``all``: whatever the version has of indexes.
    ``evolves``: later writes add a column. ``keeps_meta``: rows have meta columns.
    """

    version: str
    merge_on_read: bool = False
    partitions: Partitions = "hive"
    metadata: Metadata = "files"
    all_types: bool = False
    evolves: bool = False
    keeps_meta: bool = True
    columns: tuple[str, ...] = ("v", "s")
    curve: str = "kd-tree"
    mapping: str = "rank"

    def __str__(self) -> str:
        words = [self.version, "mor" if self.merge_on_read else "cow", self.partitions]
        words += [f"mdt.{self.metadata}"] + ["types"] * self.all_types + ["evolved"] * self.evolves
        words += ["virtual"] * (not self.keeps_meta) + [self.curve if self.columns else "packed"]
        return "-".join([*words, *([self.mapping] if self.mapping != "rank" else [])])

    @property
    def indexes(self) -> tuple[str, ...]:
        """The index types that writers use to find rows; ``""``: that of the table's creation."""
        if not self.keeps_meta:
            return ("SIMPLE",)
        return ("SIMPLE", "BLOOM", *(("RECORD_INDEX",) if self.metadata == "all" else ()))

    def options(self) -> dict[str, str]:
        """The options of every write of the table."""
        kind = "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE"
        fields, keys = self._partitioning()
        said = {
            **NOTHING_BY_ITSELF,
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": fields,
            "hoodie.datasource.write.keygenerator.class": _KEYS + keys,
            "hoodie.populate.meta.fields": str(self.keeps_meta).lower(),
            "hoodie.index.type": "SIMPLE",
            "hoodie.index.bloom.num_entries": "100",
            "hoodie.bloom.index.filter.dynamic.max.entries": "200",
            **self._metadata(),
        }
        if self.partitions in ("hive", "encoded", "levels", "dropped"):
            said["hoodie.datasource.write.hive_style_partitioning"] = "true"
        if self.partitions in ("encoded", "levels"):
            said["hoodie.datasource.write.partitionpath.urlencode"] = "true"
        if self.partitions == "dropped":
            said["hoodie.datasource.write.drop.partition.columns"] = "true"
        return said

    def _partitioning(self) -> tuple[str, str]:
        if self.partitions == "none":
            return "", "NonpartitionedKeyGenerator"
        if self.partitions == "levels":
            return "p,q", "ComplexKeyGenerator"
        return "p", "SimpleKeyGenerator"

    def _metadata(self) -> dict[str, str]:
        if self.metadata == "all":
            return INDEXES | FEW_GROUPS
        return {
            "hoodie.metadata.enable": str(self.metadata == "files").lower(),
            "hoodie.metadata.index.column.stats.enable": "false",
            "hoodie.metadata.index.partition.stats.enable": "false",
        }

    def query(self, rows: Rows, *, is_late: bool) -> str:
        """Return the rows as SQL; ``is_late``: of a write after the first two."""
        letter = "substr(id, 1, 1)"
        partition = f"concat('x/1=', {letter}, ' %')" if self.partitions == "encoded" else letter
        listed = ", ".join(f"('{key}', {value})" for key, value in rows.items())
        more = (TYPES if self.all_types else "") + (ADDED if self.evolves and is_late else "")
        return (
            f"select id, {partition} p, cast(substr(id, 2) as int) % 2 q, cast(v as bigint) ts, v, "
            f"concat('s', v) s, v / 4.0D - 3 d{more} from values {listed} as r(id, v)"
        )


@dataclass(slots=True, kw_only=True)
class Subject:
    """A table that real Hudi writes, and the number that every key should have.

    ``kept``: the text of rows that were not changed since they were recorded.
    """

    shape: Shape
    hudi: RealHudi
    table: HudiTable
    model: dict[str, int]
    is_late: bool = False
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.table.path

    def copy(self, path: Path) -> Subject:
        """Copy the table to another folder; the copies are independent."""
        copy_table(self.path, path)
        table = self.table.at(path)
        return replace(self, table=table, model=dict(self.model), kept=dict(self.kept))

    # what Hudi does

    def write(
        self,
        rows: Rows,
        operation: str = "upsert",
        options: Mapping[str, str] | None = None,
        gate: Path | None = None,
    ) -> str:
        """Write with Hudi and change the model; returns the instant.

        ``gate``: as in worker.write_query.
        """
        said = {**self.table.options, "hoodie.datasource.write.operation": operation}
        query = self.shape.query(rows, is_late=self.is_late)
        self.hudi.ask(
            "write_query",
            table=self.table,
            query=query,
            options={**said, **(options or {})},
            gate=str(gate) if gate else None,
        )
        for key, value in rows.items():
            self.kept.pop(key, None)
            if operation == "delete":
                self.model.pop(key, None)
            else:
                self.model[key] = value
        return self.table.last_instant()

    def with_services(self, options: Mapping[str, str] | None = None) -> HudiTable:
        """Return the table for a service, with the columns that it writes."""
        name = max(name for name in self.table.instants() if _COMPLETED.fullmatch(name))
        extra = CommitMetadata.parse((self.table.timeline / name).read_bytes(), name).extra
        said = {"hoodie.avro.schema": extra["schema"], "hoodie.write.schema": extra["schema"]}
        return HudiTable(path=self.path, options={**self.table.options, **said, **(options or {})})

    def compact(self) -> None:
        table = self.with_services()
        instant = self.hudi.schedule(table, "COMPACT")
        assert instant
        self.hudi.compact(table, instant)

    # what Hudi reads

    def read(self, asked: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Answer]:
        """Return answers by name; a value has ``options`` and maybe ``where``."""
        reads = [{"table": str(self.path), **one} for one in asked.values()]
        said = self.hudi.ask("read_tables", reads=reads, folder=str(folder))
        return dict(zip(asked, map(Answer.from_record, said), strict=True))

    def record(self, folder: Path) -> None:
        """Record the current rows as unchanged."""
        found = self.read({"rows": {"options": BY_LISTING}}, folder)["rows"]
        self.kept = dict(zip(_keys(found), without_file_names(found).texts(), strict=True))

    def assert_right(self, folder: Path, what: str = "") -> None:
        """Check that Hudi reads the model, and that the metadata table lists what exists."""
        self.assert_rows(folder, what)
        self.assert_listed(what)

    def assert_rows(self, folder: Path, what: str = "") -> None:
        """Check that Hudi reads the model, each key once, and unchanged rows as they were."""
        asked = {"listing": {"options": BY_LISTING}, "skipping": {"options": SKIPPING}}
        answers = self.read(asked, folder)
        for name, answer in answers.items():
            where = f"{what}: {name}"
            assert () == answer.refusal, where
            rows = answer.rows
            assert rows is not None
            keys = _keys(answer)
            assert [] == [key for key, many in Counter(keys).items() if many > 1], where
            numbers = dict(zip(keys, rows.column("v").to_pylist(), strict=True))
            assert self.model == numbers, self._describe(f"{where} reads otherwise", answer)
            texts = dict(zip(keys, without_file_names(answer).texts(), strict=True))
            assert self.kept == {key: texts[key] for key in self.kept}, where

    def _describe(self, what: str, answer: Answer) -> str:
        """Return the differences from the model, and the timeline in order of writing."""
        assert answer.rows is not None
        read = {row["id"]: row for row in answer.rows.to_pylist()}
        lines = [what]
        for key in sorted({*self.model, *read}):
            row = read.get(key, {})
            if self.model.get(key) != row.get("v"):
                place = [row.get(f"_hoodie_{name}") for name in ("commit_time", "file_name")]
                lines.append(f"{key}: written {self.model.get(key)}, read {row.get('v')} {place}")
        files = [self.table.timeline / name for name in self.table.instants()]
        for modified, name in sorted((file.stat().st_mtime, file.name) for file in files):
            lines.append(f"{datetime.fromtimestamp(modified, UTC):%H:%M:%S.%f} {name}")
        return "\n".join(lines)

    def assert_listed(self, what: str = "") -> None:
        """Check that the metadata table, if any, lists what exists."""
        if self.table.metadata_partitions():
            assert directory_listing(self.path) == self.hudi.listing(self.table), what

    def views(self) -> dict[str, dict[str, Any]]:
        """Return the ways to read the table now and in the past.

        The past is before there were log files, and before the last write to them.
        """
        wheres = {
            "all": "true",
            "range": "v between 10 and 20",
            "point": "s = 's12'",
            "both": "v > 5 and d < 0",
        }
        ways = {"listing": BY_LISTING, "metadata": METADATA, "skipping": SKIPPING}
        asked: dict[str, dict[str, Any]] = {
            f"{where} by {way}": {"options": options, "where": wheres[where]}
            for where in wheres
            for way, options in ways.items()
            if (where == "all") or way == "skipping" or (where, way) == ("range", "listing")
        }
        for requested, _ in list_completed(self.table)[1::2]:
            asked[f"as of {requested}"] = {"options": {"as.of.instant": requested}}
        return asked

    def increments(self) -> dict[str, dict[str, Any]]:
        """Return incremental reads since the first write and since the last."""
        if not self.shape.keeps_meta:
            return {}  # Hudi has none of such tables
        times = sorted(moment for _, moment in list_completed(self.table))
        return {
            f"since {begin}": {
                "options": {
                    "hoodie.datasource.query.type": "incremental",
                    "hoodie.datasource.read.begin.instanttime": begin,
                }
            }
            for begin in (times[0], times[-1])
        }


def without_file_names(answer: Answer) -> Answer:
    """Return the answer without what a rewrite must change."""
    if answer.rows is None or _NOT_KEPT not in answer.rows.column_names:
        return answer
    types = tuple(kind for kind in answer.types if kind[0] != _NOT_KEPT)
    return Answer(types=types, rows=answer.rows.drop_columns([_NOT_KEPT]))


def find_changes(before: Mapping[str, Answer], after: Mapping[str, Answer]) -> list[str]:
    """Return differences between two readings, without file names; a line each."""
    return [
        f"{name}: {line}"
        for name, answer in before.items()
        for line in find_differences(without_file_names(answer), without_file_names(after[name]))
    ]


def list_completed(table: HudiTable) -> list[tuple[str, str]]:
    """Return requested time, and the time of Hudi's incremental reads, of every write."""
    found = [_COMPLETED.fullmatch(name) for name in table.instants()]
    return sorted((name[1], name[2] or name[1]) for name in found if name)


def list_replaced(table: HudiTable) -> dict[str, set[str]]:
    """Return the file ids that each completed replacecommit replaced."""
    found = {}
    for name in table.instants(".replacecommit"):
        data = (table.timeline / name).read_bytes()
        gone = CommitMetadata.parse(data, name).replaced
        ids = {file for files in gone.values() for file in files}
        found[re.split(r"[._]", name)[0]] = ids
    return found


def _keys(answer: Answer) -> list[str]:
    assert answer.rows is not None, answer.refusal
    keys: list[str] = answer.rows.column("id").to_pylist()
    return keys


def make_subject(hudi: RealHudi, path: Path, shape: Shape) -> Subject:
    """Make a table: two inserts, then updates and deletes that leave log files pending."""
    table = HudiTable(path=path, options=shape.options())
    subject = Subject(shape=shape, hudi=hudi, table=table, model={})
    write_old_dates(hudi, shape)
    subject.write(_rows("a", range(8)) | _rows("b", range(5)), "insert")
    subject.write(_rows("a", range(8, 14)) | _rows("b", range(5, 9)), "insert")
    subject.is_late = True
    subject.write(_rows("a", range(14, 18)) | _rows("c", range(3)), "insert")
    # v from 20 on: no old dates are updated, for which Spark wants settings of its own
    subject.write({"a01": 21, "a09": 22, "b02": 23, "b06": 24, "c02": 25})
    # Hudi 0.15 restores nothing from before the metadata table's first compaction
    subject.write({"a03": 0, "b07": 0}, "delete", COMPACT_METADATA)
    return subject


def make_small_subject(hudi: RealHudi, path: Path, shape: Shape) -> Subject:
    """Make two file groups in one partition and one in another, with pending changes in one."""
    subject = Subject(
        shape=shape, hudi=hudi, table=HudiTable(path=path, options=shape.options()), model={}
    )
    subject.write({"a01": 1, "a02": 2, "b01": 3, "b02": 4}, "insert")
    subject.write({"a03": 5, "a04": 6}, "insert")
    subject.write({"a01": 7, "a03": 8})
    subject.write({"a04": 0}, "delete")
    return subject


def write_old_dates(hudi: RealHudi, shape: Shape) -> None:
    """Let Spark write and read dates unchanged."""
    if shape.all_types:
        for setting in OLD_DATES:
            hudi.sql(f"set {setting}=CORRECTED")


def _rows(letter: str, numbers: Iterable[int]) -> dict[str, int]:
    return {f"{letter}{n:02}": (n * 7 + ord(letter)) % 20 for n in numbers}


Clusterer = Callable[[Subject], str]


def cluster_by_hudi(subject: Subject) -> str:
    """Cluster everything with real Hudi; returns the instant."""
    shape = subject.shape
    strategies = {"z-order": "ZORDER", "hilbert": "HILBERT"}
    said = {
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(1 << 30),
        "hoodie.clustering.plan.strategy.sort.columns": ",".join(shape.columns),
        "hoodie.layout.optimize.strategy": strategies.get(shape.curve, "LINEAR"),
    }
    table = subject.with_services(said)
    instant = subject.hudi.schedule(table, "CLUSTER", said)
    assert instant
    subject.hudi.cluster(table, instant)
    return instant


SubjectMaker = Callable[[RealHudi, Path, Shape], Subject]


def name_kept_subject(make: SubjectMaker, shape: Shape) -> KeptTable:
    """Return the archive of a table."""
    queries = [shape.query({"a01": 1}, is_late=late) for late in (False, True)]
    return KeptTable(
        name=f"{make.__name__}-{shape}",
        made_by=make,
        arguments=(shape, shape.options(), queries),
    )


def unpack_or_make_subject(
    make: SubjectMaker, hudi: RealHudi, path: Path, shape: Shape, folder: Path
) -> Subject:
    """Return a table with its recorded rows; ``folder`` is for Hudi's answers."""
    kept = name_kept_subject(make, shape)
    facts = kept.unpack(path)
    if facts is None:
        made = make(hudi, path, shape)
        made.record(folder)
        told = {"model": made.model, "kept": made.kept, "is_late": made.is_late}
        facts = kept.record(path, told)
    write_old_dates(hudi, shape)
    table = HudiTable(path=path, options=shape.options())
    return Subject(shape=shape, hudi=hudi, table=table, **facts)


class SubjectCache:
    """Unpacks or makes, and clusters, each table once; returns copies from before and after."""

    def __init__(
        self, real_hudi: Callable[[str], RealHudi], folder: Path, clusterer: Clusterer
    ) -> None:
        self._real_hudi, self._folder, self._clusterer = real_hudi, folder, clusterer
        self._before: dict[Shape, Subject] = {}
        self._after: dict[Shape, Subject] = {}
        self._copies = 0

    def unclustered(self, shape: Shape) -> Subject:
        if shape not in self._before:
            self._before[shape] = unpack_or_make_subject(
                make_subject, self._real_hudi(shape.version), self._new(), shape, self._new()
            )
        return self._before[shape]

    def clustered(self, shape: Shape) -> Subject:
        if shape not in self._after:
            copy = self.unclustered(shape).copy(self._new())
            self._clusterer(copy)
            self._after[shape] = copy
        return self._after[shape]

    def copy_subject(self, subject: Subject) -> Subject:
        return subject.copy(self._new())

    def new_answer_folder(self) -> Path:
        """Make a folder for answers."""
        return self._new()

    def _new(self) -> Path:
        self._copies += 1
        return self._folder / str(self._copies)


def list_shapes(version: str) -> list[Shape]:
    """Return all shapes that are worth trying, for runs by hand."""
    kinds: list[Shape] = []
    for mor in (False, True):
        base = Shape(version=version, merge_on_read=mor)
        kinds += [
            replace(base, metadata=metadata, partitions=partitions, curve=curve)
            for metadata in ("off", "files", "all")
            for partitions, curve in (
                ("none", "kd-tree"),
                ("plain", "linear"),
                ("hive", "hilbert"),
                ("encoded", "z-order"),
                ("levels", "kd-tree"),
            )
        ]
        kinds += [
            replace(base, all_types=True, metadata=metadata, evolves=evolves, columns=columns)
            for metadata in ("files", "all")
            for evolves in (False, True)
            for columns in (("dt", "d18"), ("t", "s", "i"))
        ]
        kinds += [
            replace(base, columns=()),
            replace(base, columns=(), metadata="all"),
            replace(base, curve="z-order", mapping="direct"),
            replace(base, curve="hilbert", mapping="direct", metadata="all"),
            replace(base, partitions="dropped", metadata="all"),
        ]
        # Hudi 1.0.2 does not read the log files of such tables when they hold deletes
        if (version, mor) != ("1.0.2", True):
            kinds += [
                replace(base, keeps_meta=False),
                replace(base, keeps_meta=False, partitions="none", all_types=True),
            ]
    assert version in TABLE_VERSION
    return list(dict.fromkeys(kinds))
