"""Predicted reads of slices with log files are those of a real read, in files, bytes and rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import reconciler
from reconciler.cli.run_read import prune_plainly
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.file_slices.merge.slice_reader import SliceReadOptions, read_slice
from reconciler.reader.merge_report import measure_merging
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.plain_condition import parse_plain_condition
from reconciler.reader.slice_rows import get_slice_files
from reconciler.spec.model import Query
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.applying import apply_here
from tests.our_compaction import make_spec
from tests.published_indexes import publish_index
from tests.rewrite_jobs import unpack_table
from tests.selection import examples, long, take_turn
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

NOW = datetime(2026, 11, 27, tzinfo=UTC)
#: tables with log files; of an archive with several the one that is named
TABLES = (
    ("v9_mor_overlap_done", None),
    ("compacting/1.0.2", "pending"),
    long("compacting/0.15.0", "pending"),
    *(
        long(name, None)
        for name in (
            "v6_mor_overlap",
            "v6_lazy_mor_tls",
            "v8_mor_part",
            "v8_mor_overlap",
            "v9_mor_part",
            "merging/logc_0.15.0",
            "merging/logc_1.2.0",
            "merging/parq_1.0.2",
            "reading/pending_compaction_and_clustering_1.2.0",
            "reading/written_beside_compaction_1.2.0",
            "reading/inserts_into_logs_0.15.0",
            "reading/upserts_and_inserts_1.2.0",
        )
    ),
    long("compacting/1.2.0", "pending"),
    long("compacting/1.2.0", "done"),
)
COMPACT = "  compaction: {afterDeltaCommits: 1}\n"
#: whose compaction changes what queries read
COMPACTED = (
    ("v9_mor_overlap_done", None),
    ("compacting/0.15.0", "done"),
    *(
        long(name, None)
        for name in (
            "v8_mor_part",
            "v9_mor_part",
            "merging/event_0.15.0",
            "merging/commit_1.0.2",
            "merging/parq_1.0.2",
            "merging/evol_1.2.0",
            "reading/inserts_into_logs_0.15.0",
            "reading/upserts_and_inserts_1.2.0",
        )
    ),
    long("compacting/1.2.0", "done"),
)


def make_table(name, part, folder):
    path = unpack_table(name, folder)
    return path if part is None else path.parent / part


def list_wheres(path):
    """Return conditions that some rows, few rows and no rows of a table fulfil."""
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    options = SliceReadOptions(rules=scan.rules, schema=scan.table_schema, committed=scan.committed)
    rows = pa.Table.from_batches(
        [
            batch
            for row in range(len(scan.slices))
            for batch in read_slice(get_slice_files(scan, row), options, storage)
        ],
        scan.table_schema,
    )
    wheres = []
    for field in scan.table_schema:
        if field.name.startswith("_hoodie") and field.name != "_hoodie_record_key":
            continue
        if not (pa.types.is_signed_integer(field.type) or pa.types.is_string(field.type)):
            continue
        known = pc.drop_null(rows.column(field.name))
        if len(known):
            ends = pc.min_max(known).as_py()
            least, most = ends["min"], ends["max"]
            beyond = most + 1 if isinstance(most, int) else f"{most}~"
            wheres += [
                f"{field.name} = {least!r}",
                f"{field.name} >= {beyond!r}",
                f"{field.name} in ({least!r}, {most!r})",
            ]
    return take_turn(wheres, of=4)


def open_table(path):
    """Return a storage that records, and what a read of the table is to open."""
    storage = RecordingStorage(open_storage(str(path)))
    return path, storage, open_scan(storage, ReadRequest())


def read_really(opened, where):
    """Return what a read of a table opens for a condition."""
    path, storage, scan = opened
    predicate = parse_plain_condition(where, scan)
    assert predicate is not None
    kept = prune_plainly(scan, predicate, storage).kept
    options = SliceReadOptions(rules=scan.rules, schema=scan.table_schema, committed=scan.committed)
    explained = measure_merging(storage, kept)
    storage.calls.clear()
    rows = 0
    for row in range(len(kept.slices)):
        counts = MergeCounts()
        files = get_slice_files(kept, row)
        for _ in read_slice(files, options, storage, on_footer=counts.add_footer, counts=counts):
            pass
        rows += (counts.base_rows + counts.records + counts.deletions) if files.logs else 0
    opened = {path for call in storage.calls for path in call.paths}
    logs = {path for path in opened if ".log." in path}
    sizes = {one: (path / one).stat().st_size for one in opened}
    merged = [row for row, has in enumerate(kept.has_logs.tolist()) if has]
    assert logs <= {one for call in storage.calls if call.method == "read" for one in call.paths}
    really = {
        "slices": len(merged),
        "logFiles": len(logs),
        "logBytes": sum(sizes[one] for one in logs),
        "rows": rows,
    }
    assert explained is None or really == read_explanation(explained, rows)
    return {"files": len(kept.slices), "bytes": sum(sizes.values()), **really}


def read_explanation(merging, rows):
    """Return what ``read --explain`` says; ``rows``: what counts if it does not know them."""
    if merging.log_records is not None:
        rows = merging.base_rows + merging.log_records
    return {
        "slices": merging.slices,
        "logFiles": merging.log_files,
        "logBytes": merging.log_bytes,
        "rows": rows,
    }


def predict(path, wheres, *, more=""):
    spec = make_spec(path, more=more)
    queries = tuple(Query(name=where, where=where) for where in wheres)
    spec = replace(spec, queries=queries)
    (table,) = reconciler.plan([spec], now=NOW).tables
    assert table.error is None
    return table


def read_prediction(one, when):
    merging = one.get("merging", {})
    return {
        "files": one[f"files{when}"],
        "bytes": one[f"bytes{when}"],
        **{
            name: merging.get(f"{name}{when}", 0)
            for name in ("slices", "logFiles", "logBytes", "rows")
        },
    }


@pytest.mark.parametrize(("name", "part"), TABLES)
def test_what_is_predicted_is_what_a_read_opens(name, part, tmp_path):
    path = make_table(name, part, tmp_path)
    wheres = list_wheres(path)
    publish_index(path, tuple(dict.fromkeys(where.split()[0] for where in wheres)))
    table = predict(path, wheres)
    predicted = {one["query"]: read_prediction(one, "Before") for one in table.predictions}

    opened = open_table(path)
    really = {where: read_really(opened, where) for where in wheres}
    for where, one in predicted.items():
        if one["rows"] is None:  # a log compaction has written some, or an archived write
            really[where]["rows"] = None

    assert really == predicted
    assert any(one["logFiles"] for one in predicted.values())
    assert ("logc" in name) == any(one["rows"] is None for one in predicted.values())


@pytest.mark.parametrize(("name", "part"), COMPACTED)
def test_what_is_predicted_after_a_compaction_is_what_a_read_opens_then(name, part, tmp_path):
    path = make_table(name, part, tmp_path)
    wheres = list_wheres(path)
    columns = tuple(dict.fromkeys(where.split()[0] for where in wheres))
    publish_index(path, columns)
    table = predict(path, wheres, more=COMPACT)
    opened = open_table(path)
    before = [read_really(opened, where) for where in wheres]
    result = apply_here(reconciler.plan([make_spec(path, more=COMPACT)], now=NOW))
    publish_index(path, columns)
    opened, off = open_table(path), {}
    for one in table.predictions:
        then, really = read_prediction(one, "After"), read_really(opened, one["query"])
        if then["rows"] is None:
            really["rows"] = None
        # a new file has not all values of the old one: log files have deleted or replaced rows
        if ">=" in one["query"] and then["files"] > really["files"]:
            then["files"] = really["files"]
        del then["bytes"], really["bytes"]  # files of few rows are footers and bloom filters
        if then != really:
            off[one["query"]] = then, really

    assert 0 == result.exit_code
    assert {} == off
    assert before == [read_prediction(one, "Before") for one in table.predictions]
    assert any(one["merging"]["slicesAfter"] == 0 for one in table.predictions if "merging" in one)


def write_trips(folder, version, *, rows):
    """Write a table in the order of its keys, and update a tenth of its rows twice."""
    runs = WriteRuns(write_spec(folder, version=version, kind="MERGE_ON_READ"))
    runs.clock.ms = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp() * 1000)
    rng = np.random.default_rng(version)
    texts = [f"{number:06x}" for number in rng.integers(0, 1 << 24, rows)]
    for part, keys in enumerate(np.split(np.arange(rows), 2)):
        found = [(int(key), f"p{part}", int(key) % 997, texts[key]) for key in keys]
        runs.write(make_rows(*found), WriteMode.BULK_INSERT)
    for turn in range(2):
        keys = rng.choice(rows * 3 // 4, rows // 10, replace=False)
        found = [(int(k), f"p{k * 2 // rows}", int(k) % 997 + turn, texts[k]) for k in keys]
        runs.write(make_rows(*found), WriteMode.UPSERT)
    return Path(runs.spec.path)


@pytest.mark.parametrize(
    ("version", "rows"), [(9, 2_000), long(6, 4_000), long(8, 4_000), long(9, 200_000)]
)
def test_bytes_after_a_compaction_are_as_predicted_within_the_error(version, rows, tmp_path):
    path = write_trips(tmp_path, version, rows=rows)
    wheres = [
        "id = 17",
        f"id >= {rows // 2}",
        f"id between 5 and {rows // 3}",
        "ts < 50",
        "x < '1'",
    ]
    publish_index(path, ("id", "ts", "x"))
    table = predict(path, wheres, more=COMPACT)
    opened = open_table(path)
    before = [read_really(opened, one["query"]) for one in table.predictions]
    assert before == [read_prediction(one, "Before") for one in table.predictions]
    assert 0 == apply_here(reconciler.plan([make_spec(path, more=COMPACT)], now=NOW)).exit_code
    publish_index(path, ("id", "ts", "x"))
    opened = open_table(path)

    for one, now in zip(table.predictions, before, strict=True):
        then, really = read_prediction(one, "After"), read_really(opened, one["query"])
        assert abs(then["bytes"] - really["bytes"]) <= one["error"] * then["bytes"]
        assert one["error"] <= 0.15
        assert then["files"] == really["files"]
        assert really["bytes"] < now["bytes"] or not now["logFiles"]


@pytest.mark.parametrize(
    ("more", "remedy"), [("", "compact them"), (COMPACT, "the declared compaction merges them")]
)
def test_a_query_over_its_limit_hears_of_log_files_without_a_clustering_too(more, remedy, tmp_path):
    path = unpack_table("v9_mor_part", tmp_path)
    query = Query(name="q", where="_hoodie_record_key = 'nobody'", max_scan=0.1)
    spec = replace(make_spec(path, more=more), queries=(query,))
    (table,) = reconciler.plan([spec], now=NOW).tables
    (said,) = [note.because for note in table.warnings if note.rule == "maxScan"]

    assert said.endswith(f"; it reads 3 file slices only because of log files: {remedy}")


@pytest.mark.parametrize("turn", range(examples(3, many=200)))
def test_a_damaged_log_file_or_write_leaves_predictions_without_what_it_tells(turn, tmp_path):
    name, part = (("v9_mor_part", None), ("compacting/0.15.0", "done"))[turn % 2]
    path = make_table(name, part, tmp_path)
    whole = predict(path, ["id = id"], more=COMPACT).predictions
    rng = np.random.default_rng(turn)
    logs = sorted(file for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts)
    writes = sorted((path / ".hoodie").rglob("*.deltacommit"))[1:]
    chosen = rng.choice([str(file) for file in (logs if turn % 3 else writes)])
    data = bytearray(Path(chosen).read_bytes())
    how = ("cut", "flipped", "emptied")[int(rng.integers(3))]
    at = int(rng.integers(len(data)))
    if how == "flipped":
        data[at] ^= 1 << int(rng.integers(8))
    Path(chosen).write_bytes(data[: {"cut": at, "flipped": len(data), "emptied": 0}[how]])
    spec = replace(make_spec(path, more=COMPACT), queries=(Query(name="q", where="id = id"),))
    crashes = []
    (table,) = reconciler.plan(
        [spec], now=NOW, on_crash=lambda *crash: crashes.append(crash)
    ).tables

    assert [] == crashes
    if table.error is not None:
        assert Path(chosen).name in table.error
    elif table.predictions:
        (found,) = table.predictions
        assert found["filesBefore"] == whole[0]["filesBefore"]
        assert found["merging"]["logFilesBefore"] == whole[0]["merging"]["logFilesBefore"]
