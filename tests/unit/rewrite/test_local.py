"""Groups of small base files, rewritten in this process."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from datetime import date
from itertools import count, islice, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, ReconcilerError, StorageError, UnsupportedError
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.merge.calendar import PROLEPTIC, UNSPECIFIED, Calendar
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.hudi.timeline.markers import marker_path
from reconciler.rewrite.group_columns import GroupColumns
from reconciler.rewrite.local import LocalRewriter, MemoryLimits
from reconciler.rewrite.model import RowOrdering, Tally
from reconciler.spark.spill_files import read_blocks
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.unit.rewrite import tables
from tests.unit.rewrite.tables import (
    FORM,
    TREE,
    avro,
    base_file,
    contents,
    counted,
    footers,
    group,
    rewritten,
    storage,
    work,
)

#: the smallest units: parts of a row group, runs of a batch, sorted files of a run
TINY = MemoryLimits(part_bytes=2000, run_bytes=1, sort_bytes=1)


def grid(start, rows):
    """Return rows with ascending ids and scattered positions."""
    number = np.arange(start, start + rows)
    return {
        "id": [f"k{n:06d}" for n in number],
        "x": number * 7919 % 1009,
        "y": number * 104729 % 997,
    }


@pytest.fixture
def store():
    return storage()


def slices_of(store, files=3, rows=400, **more):
    return [base_file(store, n, grid(n * rows, rows), **more) for n in range(files)]


def before(store, slices):
    return counted(*(pq.read_table(pa.BufferReader(store.read(one.base))) for one in slices))


@pytest.mark.parametrize("bounds", [MemoryLimits(), TINY], ids=["whole", "pieces"])
@pytest.mark.parametrize("curve", ["kd-tree", "hilbert", "z-order", "linear", None])
def test_every_row_is_in_the_new_files_once(store, curve, bounds):
    slices = slices_of(store, group_rows=100)
    ordering = replace(TREE, curve=curve) if curve else RowOrdering()
    told = []
    (made,) = rewritten(
        store, work(ordering=ordering), group(*slices, outputs=4), bounds=bounds, told=told
    )

    assert before(store, slices) == counted(*contents(store, made))
    assert made.read == made.written
    assert (3, 1200, 4, 0) == (made.number, made.read.rows, len(made.files), made.splits)
    assert sum(one.base_size for one in slices) == sum(told)
    assert all(280 <= file.rows <= 320 for file in made.files)


@pytest.mark.parametrize("bounds", [MemoryLimits(), TINY], ids=["whole", "pieces"])
def test_rows_of_a_file_lie_as_the_curve_leads(store, bounds):
    ordering = RowOrdering(columns=("y", "x"), curve="linear", mapping="rank")
    (made,) = rewritten(
        store, work(ordering=ordering), group(*slices_of(store), outputs=3), bounds=bounds
    )
    rows = [
        tuple(row) for t in contents(store, made) for row in zip(*t.select(["y", "x"]), strict=True)
    ]
    values = [(y.as_py(), x.as_py()) for y, x in rows]

    assert sorted(values) == values


@pytest.mark.parametrize("bounds", [MemoryLimits(), TINY], ids=["whole", "pieces"])
def test_packed_rows_stay_in_the_order_of_the_slices(store, bounds):
    slices = slices_of(store, files=5, rows=100, group_rows=30)
    (made,) = rewritten(
        store, work(ordering=RowOrdering()), group(*slices, outputs=2), bounds=bounds
    )
    ids = [row for table in contents(store, made) for row in table.column("id").to_pylist()]

    assert [f"k{n:06d}" for n in range(500)] == ids
    assert 245 <= made.files[0].rows <= 255


def test_a_file_is_named_by_group_file_and_attempt_and_says_so(store):
    (made,) = rewritten(store, work(), group(*slices_of(store), outputs=2))
    again = storage()
    (twin,) = rewritten(again, work(), group(*slices_of(again), outputs=2))

    form = (
        r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}-0_3-(\d)-0_2030.*\.parquet"
    )
    assert ["0", "1"] == [re.fullmatch(form, file.name)[1] for file in made.files]
    assert [file.name for file in made.files] == [file.name for file in twin.files]
    for file, table in zip(made.files, contents(store, made), strict=True):
        assert {file.name} == set(table.column("_hoodie_file_name").to_pylist())
        assert (table.column("id").to_pylist()) == table.column("_hoodie_record_key").to_pylist()
        assert {"20260101000000000"} == set(table.column("_hoodie_commit_time").to_pylist())


def test_a_marker_is_there_before_its_file(store):
    recording = RecordingStorage(store)
    slices = [base_file(store, 0, grid(0, 50), folder="p=1")]
    (made,) = rewritten(recording, work(), group(*slices, outputs=2, partition="p=1"))

    expected = []
    for file in made.files:
        expected += [marker_path(tables.INSTANT, "p=1", file.name), f"p=1/{file.name}"]
    assert expected == [call.paths[0] for call in recording.mutations]
    assert 2 == len(made.files)
    assert sum(file.size for file in made.files) == sum(
        len(store.read(f"p=1/{file.name}")) for file in made.files
    )


def test_what_the_storage_raises_stops_it_and_leaves_only_what_markers_name(store):
    slices = slices_of(store)
    kept = {one.base for one in slices}
    for at in range(1, 5):
        faulty = FaultyStorage(store, StorageFault(at=at), ConnectionError("gone"))
        asked = work(seed=f"{at:032x}")
        with pytest.raises(ConnectionError, match="gone"):
            rewritten(faulty, asked, group(*slices, outputs=2))
    listed = {entry.name for entry in store.list("") if not entry.is_folder} - kept
    marked = {entry.name for entry in store.list(f".hoodie/.temp/{tables.INSTANT}")}

    assert 2 == len(listed)  # the first file of the attempts that got that far
    assert listed < {name.removesuffix(".marker.CREATE") for name in marked}


@pytest.mark.parametrize("bounds", [MemoryLimits(), TINY], ids=["whole", "pieces"])
@pytest.mark.parametrize("ordering", [TREE, RowOrdering()], ids=["tree", "packed"])
@pytest.mark.parametrize("target", [60_000, 85_000])
def test_no_file_is_more_than_a_little_beyond_the_target(store, ordering, bounds, target):
    noise = np.random.default_rng(1).integers(0, 2**62, 6000)
    columns = {"id": [f"{n}" for n in range(6000)], "x": noise, "y": noise[::-1]}
    form = replace(FORM, group_rows=500)
    slices = [base_file(store, 0, columns, form=form)]
    (made,) = rewritten(
        store,
        work(ordering=ordering, form=form, target=target),
        group(*slices, outputs=2),
        bounds=bounds,
    )

    assert slices[0].base_size > 2.4 * target
    assert before(store, slices) == counted(*contents(store, made))
    assert made.read == made.written == Tally(rows=6000, keys=made.read.keys)
    assert max(file.size for file in made.files) <= 1.15 * target
    assert min(file.size for file in made.files) >= 0.4 * target
    assert len(made.files) == made.splits + 2
    of = [file.name.split("_")[0] for file in made.files]
    assert len(of) == len(set(of))
    assert 2 == len({name.rpartition("-")[0] for name in of})


@pytest.mark.parametrize("bounds", [MemoryLimits(), TINY], ids=["whole", "pieces"])
def test_a_bucket_becomes_one_file_under_its_number_however_large(store, bounds):
    slices = [base_file(store, 0, grid(0, 6000), form=replace(FORM, group_rows=500))]
    asked = work(form=replace(FORM, group_rows=500), target=slices[0].base_size // 3)
    bucket = "00000012-aaaa-bbbb-cccc-dddddddddddd-0"
    (made,) = rewritten(store, asked, group(*slices, bucket=bucket), bounds=bounds)

    assert (1, 0, 6000) == (len(made.files), made.splits, made.written.rows)
    assert before(store, slices) == counted(*contents(store, made))
    file_id = made.files[0].name.partition("_")[0]
    assert re.fullmatch(r"00000012-\w{4}-\w{4}-\w{4}-\w{12}-0", file_id)
    assert bucket != file_id


def test_a_footer_that_fills_a_file_does_not_split_it(store):
    for seed, rows in enumerate([1000, 1]):
        asked = work(target=500, form=replace(FORM, group_rows=rows), seed=f"{seed:032x}")
        (made,) = rewritten(store, asked, group(base_file(store, seed, grid(0, 30))))

        assert (1, 0, 30) == (len(made.files), made.splits, made.written.rows)


def test_row_groups_are_cut_where_the_form_says(store):
    form = replace(FORM, group_rows=100)
    (made,) = rewritten(store, work(form=form), group(*slices_of(store), outputs=2))

    for footer in footers(store, made):
        rows = [footer.row_group(nth).num_rows for nth in range(footer.num_row_groups)]
        assert max(rows) <= 100
        assert min(rows) >= 55
    ranges = [
        [footer.row_group(n).column(6).statistics for n in range(footer.num_row_groups)]
        for footer in footers(store, made)
    ]
    wide = [s.max - s.min for file in ranges for s in file]
    assert np.mean(wide) < 600  # of 1009: row groups are parts of their file


def test_rows_that_are_alike_are_parted_by_their_keys(store):
    columns = {"id": [f"{n}" for n in range(1000)], "x": [1] * 1000, "y": [None] * 1000}
    (made,) = rewritten(store, work(), group(base_file(store, 0, columns), outputs=4))

    assert 4 == len(made.files)
    assert all(200 <= file.rows <= 300 for file in made.files)


def test_a_group_without_rows_has_no_files(store):
    none = pa.array([], pa.int64())
    columns = {"id": none.cast(pa.string()), "x": none, "y": none}
    slices = [base_file(store, 0, columns)]
    (made,) = rewritten(store, work(), group(*slices, outputs=3))

    assert (3, (), Tally(), Tally(), 0) == (
        made.number,
        made.files,
        made.read,
        made.written,
        made.splits,
    )


def test_fewer_rows_than_files_are_files_of_a_row(store):
    (made,) = rewritten(store, work(), group(base_file(store, 0, grid(0, 2)), outputs=5))

    assert [1, 1] == [file.rows for file in made.files]


def test_a_column_that_only_folders_say_is_not_in_the_files_and_may_order_them(store):
    schema = FileSchema.from_avro(
        avro(("id", "string"), ("x", "long"), ("p", "string")), "t", dropped=["p"]
    )
    columns = grid(0, 50)
    columns.pop("y")
    slices = [base_file(store, 0, columns, schema=schema, folder="p=7")]
    known = schema.columns.append(pa.field("p", pa.string()))
    for reading in (known, schema.columns):
        asked = work(
            schema,
            seed=f"{len(reading):032x}",
            reading=SliceReadOptions(rules=MergeRules(), schema=reading),
            ordering=RowOrdering(columns=("p", "x"), curve="linear", mapping="rank"),
        )
        more = {"outputs": 2, "partition": "p=7", "values": {"p": "7"}}
        (made,) = rewritten(store, asked, group(*slices, **more))
        found = contents(store, made, "p=7")

        assert [[*schema.columns.names]] * 2 == [table.column_names for table in found]
        assert sorted(columns["x"]) == [x for t in found for x in t.column("x").to_pylist()]


def test_a_column_that_older_files_left_to_folders_gets_the_folders_value(store):
    text = avro(("id", "string"), ("x", "long"), ("p", "string"))
    old, new = FileSchema.from_avro(text, "t", dropped=["p"]), FileSchema.from_avro(text, "t")
    slices = [
        base_file(store, 0, {"id": ["a"], "x": [1]}, schema=old, folder="p=7"),
        base_file(store, 1, {"id": ["b"], "x": [2], "p": ["7"]}, schema=new, folder="p=7"),
    ]
    asked = work(new, ordering=RowOrdering())
    (made,) = rewritten(store, asked, group(*slices, partition="p=7", values={"p": "7"}))
    (found,) = contents(store, made, "p=7")

    assert ["7", "7"] == found.column("p").to_pylist()


def test_a_table_without_meta_columns_is_told_by_its_key_fields(store):
    form = replace(FORM, has_keys=False, bloom=None)
    slices = [base_file(store, n, grid(n * 100, 100), form=form) for n in range(2)]
    (made,) = rewritten(store, work(form=form, key_fields=("id",)), group(*slices, outputs=2))
    (none,) = rewritten(store, work(form=form, seed="1" * 32), group(*slices, outputs=2))

    for one in (made, none):
        found = contents(store, one)
        assert before(store, slices) == counted(*found)
        assert one.read == one.written
        assert 200 == sum(table.column("_hoodie_record_key").null_count for table in found)
        assert [file.name for file in one.files] == [
            table.column("_hoodie_file_name")[0].as_py() for table in found
        ]
    assert made.read != none.read


def test_columns_that_files_lack_are_null_and_numbers_widen(store):
    old = FileSchema.from_avro(avro(("id", "string"), ("x", "int")), "t")
    new = FileSchema.from_avro(avro(("id", "string"), ("x", "long"), ("y", "long")), "t")
    few = {"id": ["a", "b"], "x": pa.array([2, 1], pa.int32())}
    slices = [base_file(store, 0, few, schema=old), base_file(store, 1, grid(0, 1), schema=new)]
    ordering = RowOrdering(columns=("x",), curve="linear", mapping="rank")
    (made,) = rewritten(store, work(new, ordering=ordering), group(*slices))
    (found,) = contents(store, made)

    assert [(0, 0), (1, None), (2, None)] == list(
        zip(found.column("x").to_pylist(), found.column("y").to_pylist(), strict=True)
    )


def test_nested_columns_come_along(store):
    inner = {"type": "record", "name": "s", "fields": [{"name": "a", "type": ["null", "long"]}]}
    kinds = [
        ("l", {"type": "array", "items": ["null", "string"]}),
        ("s", inner),
        ("m", {"type": "map", "values": ["null", "long"]}),
    ]
    schema = FileSchema.from_avro(avro(("id", "string"), ("x", "long"), *kinds), "t")
    columns = {
        "id": ["a", "b", "c"],
        "x": [3, 1, 2],
        "l": [["q", None], [], None],
        "s": [{"a": 1}, None, {"a": None}],
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
    slices = [base_file(store, 0, columns, schema=schema)]
    for seed, ordering in enumerate([RowOrdering(columns=("x",)), RowOrdering(columns=("s.a",))]):
        asked = work(schema, ordering=ordering, seed=f"{seed:032x}")
        (made,) = rewritten(store, asked, group(*slices), bounds=TINY)
        (found,) = contents(store, made)
        rows = sorted(found.select(["id", "l", "s", "m"]).to_pylist(), key=lambda row: row["id"])

        assert [
            {"id": "a", "l": ["q", None], "s": {"a": 1}, "m": [("k", 1)]},
            {"id": "b", "l": [], "s": None, "m": None},
            {"id": "c", "l": None, "s": {"a": None}, "m": []},
        ] == rows


DATES = avro(("id", "string"), ("x", {"type": "int", "logicalType": "date"}))
OLD, NEW = date(1500, 3, 1), date(2020, 1, 1)
HYBRID = Calendar("hybrid", "UTC")


@pytest.mark.parametrize(
    ("calendars", "day", "expected"),
    [
        ([UNSPECIFIED, UNSPECIFIED], OLD, UNSPECIFIED),
        ([PROLEPTIC, PROLEPTIC], OLD, PROLEPTIC),
        ([UNSPECIFIED, PROLEPTIC], NEW, PROLEPTIC),
        ([HYBRID], NEW, PROLEPTIC),
    ],
)
def test_new_files_say_how_they_count_dates(store, calendars, day, expected):
    schema = FileSchema.from_avro(DATES, "t")
    slices = [
        base_file(
            store, n, {"id": [f"{n}"], "x": [day]}, schema=schema, form=replace(FORM, calendar=one)
        )
        for n, one in enumerate(calendars)
    ]
    asked = work(schema, ordering=RowOrdering(), form=replace(FORM, calendar=HYBRID))
    (made,) = rewritten(store, asked, group(*slices))
    (footer,) = footers(store, made)
    (found,) = contents(store, made)

    assert expected == Calendar.from_footer(footer.metadata)
    assert [day] * len(slices) == found.column("x").to_pylist()


def test_old_dates_of_the_hybrid_calendar_keep_their_day(store):
    schema = FileSchema.from_avro(DATES, "t")
    hybrid = replace(FORM, calendar=HYBRID)
    # 1500-03-01 in Julian days is 1500-03-11 in Gregorian ones
    columns = {"id": ["a"], "x": [date(1500, 3, 11)]}
    slices = [base_file(store, 0, columns, schema=schema, form=hybrid)]
    (made,) = rewritten(store, work(schema, form=hybrid, ordering=RowOrdering()), group(*slices))
    (found,) = contents(store, made)

    assert [date(1500, 3, 1)] == found.column("x").to_pylist()
    assert PROLEPTIC == Calendar.from_footer(footers(store, made)[0].metadata)


def test_old_dates_that_nobody_explains_are_not_mixed_with_others(store):
    schema = FileSchema.from_avro(DATES, "t")
    forms = [FORM, replace(FORM, calendar=PROLEPTIC)]
    slices = [
        base_file(store, n, {"id": ["a"], "x": [OLD]}, schema=schema, form=form)
        for n, form in enumerate(forms)
    ]
    with pytest.raises(UnsupportedError, match="partition '': some files with dates before 1582"):
        rewritten(store, work(schema, ordering=RowOrdering()), group(*slices))


def test_a_column_that_is_not_there_is_named(store):
    asked = work(ordering=RowOrdering(columns=("z",), curve="kd-tree"))
    with pytest.raises(UnsupportedError, match="cluster by z: the table has no such column"):
        rewritten(store, asked, group(*slices_of(store)))


def test_a_file_that_went_away_is_named(store):
    slices = [SliceFiles(base="f1-0_0-1-1_20260101000000000.parquet", base_size=1000)]
    with pytest.raises(StorageError, match=r"f1-0_0.*was removed after the clustering"):
        rewritten(store, work(), group(*slices))


def test_ranges_and_filters_come_with_the_results(store):
    asked = work(range_columns=("x", "_hoodie_record_key"))
    (made,) = rewritten(store, asked, group(*slices_of(store), outputs=2))
    for file, table, footer in zip(
        made.files, contents(store, made), footers(store, made), strict=True
    ):
        xs = table.column("x").to_pylist()
        assert (min(xs), max(xs)) == (file.ranges[0].least, file.ranges[0].greatest)
        assert footer.metadata[b"org.apache.hudi.bloomfilter"].decode() == file.bloom
        assert file.footer is None


def test_files_of_a_group_follow_each_other_on_the_way(store):
    ordering = RowOrdering(columns=("x",), curve="linear", mapping="rank")
    (made,) = rewritten(store, work(ordering=ordering), group(*slices_of(store), outputs=4))
    bounds = [
        (min(xs), max(xs)) for t in contents(store, made) for xs in [t.column("x").to_pylist()]
    ]

    assert all(last <= first for (_, last), (first, _) in pairwise(bounds))


def test_a_part_that_never_arrives_is_missed(store, monkeypatch):
    """Its rows and their tally would both be missing, so both sums would be equal."""
    shelves = "reconciler.rewrite.local.read_blocks"
    every = read_blocks
    monkeypatch.setattr(shelves, lambda kept, place: every(kept[1:], place))

    with pytest.raises(ReconcilerError) as found:
        rewritten(store, work(), group(*slices_of(store), outputs=2))
    assert "3 parts were read, but 2 arrived" in str(found.value)


def test_rows_that_a_footer_counts_and_nobody_reads_are_missed(store, monkeypatch):
    read = GroupColumns.read
    monkeypatch.setattr(GroupColumns, "read", lambda *given: islice(read(*given), 1))
    bounds = MemoryLimits(run_bytes=1)
    big = base_file(store, 0, grid(0, 400), group_rows=100)

    with pytest.raises(FormatError) as found:
        rewritten(store, work(), group(big, outputs=1), bounds=bounds)
    assert "its footer declares 400 rows, but 100 were read" in str(found.value)


def test_several_threads_write_the_files_that_one_writes():
    made = []
    for threads in (1, 3):
        store, told = storage(), []
        slices = slices_of(store, files=5, group_rows=100)
        groups = [
            group(*slices[:3], outputs=4, number=0),
            group(slices[3], outputs=2, number=1),
            group(slices[4], number=2),
        ]
        rewriter = LocalRewriter(lambda _, store=store: store, TINY, threads=threads)
        results = rewriter.rewrite(store.ref, work(), groups, progress=told.append)
        assert sum(one.bytes for one in groups) == sum(told)
        made.append(
            [(one.number, one.read, [(f.name, f.size) for f in one.files]) for one in results]
        )

    assert made[0] == made[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_damaged_file_ends_the_work_of_all_threads(store, threads):
    slices = slices_of(store, files=6)
    bad = slices[2].base
    store.replace(bad, b"x" * slices[2].base_size)
    groups = [group(one, number=number) for number, one in enumerate(slices)]
    rewriter = LocalRewriter(lambda _: store, threads=threads)

    with pytest.raises(FormatError, match=re.escape(bad)):
        rewriter.rewrite(store.ref, work(), groups, progress=lambda _: None)
    assert not [t for t in threading.enumerate() if t.name.startswith("reconciler-")]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_rewrite_stops_between_two_steps(store, threads):
    slices = slices_of(store, files=4)
    groups = [group(one, number=number) for number, one in enumerate(slices)]
    steps = count()

    def stop():
        if next(steps) > 5:
            raise KeyboardInterrupt

    rewriter = LocalRewriter(lambda _: store, threads=threads, check_stop=stop)
    with pytest.raises(KeyboardInterrupt):
        rewriter.rewrite(store.ref, work(), groups, progress=lambda _: None)
    assert next(steps) < 5 + 2 * threads + 2


@pytest.mark.parametrize("bounds", [MemoryLimits(), TINY], ids=["whole", "pieces"])
@pytest.mark.parametrize("curve", ["kd-tree", None])
def test_texts_with_and_without_few_values_come_together(store, curve, bounds):
    """One file's column has codes, another's has none, and a third has too few rows to tell."""
    avro_text = avro(("id", "string"), ("x", "long"), ("y", "long"), ("t", "string"))
    schema = FileSchema.from_avro(avro_text, "t")
    few = {**grid(0, 5000), "t": [f"text {n % 3}" for n in range(5000)]}
    many = {**grid(5000, 5000), "t": [f"text {n}" for n in range(5000)]}
    last = {**grid(10_000, 10), "t": ["text 1"] * 9 + [None]}
    slices = [
        base_file(store, number, columns, schema=schema)
        for number, columns in enumerate((few, many, last))
    ]
    ordering = TREE if curve else RowOrdering()
    job = work(schema=schema, ordering=ordering, range_columns=("t",))
    (made,) = rewritten(store, job, group(*slices, outputs=3), bounds=bounds)

    assert before(store, slices) == counted(*contents(store, made))
    assert ["text 0"] == [min(file.ranges[0].least for file in made.files)]
    assert ["text 999"] == [max(file.ranges[0].greatest for file in made.files)]


def test_the_text_of_a_filter_stays_in_its_file_where_no_index_needs_it(store):
    slices = slices_of(store)
    (kept,) = rewritten(store, work(), group(*slices))
    (left,) = rewritten(store, work(keeps_bloom=False, seed="1" * 32), group(*slices))
    stored = footers(store, left)[0].metadata[b"org.apache.hudi.bloomfilter"]

    assert [None] == [file.bloom for file in left.files]
    assert [kept.files[0].bloom] == [stored.decode()]
