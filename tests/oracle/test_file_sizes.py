"""Tables that real Hudi made, packed and split by us for declared sizes, in its hands again."""

from __future__ import annotations

import hashlib
import re

import pytest

import reconciler
from reconciler.planners.cluster import notes
from reconciler.planners.newest_slices import find_candidates
from tests.command import run
from tests.oracle import clustered_checks
from tests.oracle.clustered_tables import Shape, SubjectCache
from tests.oracle.hudi import (
    COMPACT_METADATA,
    FEW_GROUPS,
    INDEXES,
    directory_listing,
    keep_versions,
)
from tests.oracle.our_clustering import apply_here, assert_done, get_step
from tests.oracle.prepared_tables import Variant
from tests.selection import long

pytestmark = pytest.mark.oracle

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: "{path}"
  timezone: UTC
  files: {{target: {target}, small: {small}, when: {{smallFileShareAbove: 0, largeFiles: true}}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
#: test_secondary_index packs a table of version 8
PACKED = [
    Shape(version="0.15.0", metadata="all", columns=()),
    Shape(version="1.2.0", merge_on_read=True, metadata="all", columns=()),
]
OTHERS = [
    Shape(version="0.15.0", merge_on_read=True, metadata="all", columns=()),
    Shape(version="0.15.0", metadata="all", partitions="none", columns=()),
    Shape(version="1.0.2", metadata="all", columns=()),
    Shape(version="1.0.2", merge_on_read=True, metadata="all", columns=()),
    Shape(version="1.2.0", metadata="all", partitions="levels", columns=()),
]
#: rows of about 120 bytes, too many for one file of the declared size
WIDE = 4000


def declare(table, target, small):
    """Write the table's spec; returns its path."""
    file = table.path.parent / f"{table.path.name}.yaml"
    file.write_text(SPEC.format(path=table.path, target=target, small=small))
    return file


def plan(table, target, small):
    planned = reconciler.plan(reconciler.load_specs(declare(table, target, small)))
    assert [(None, ())] == [(one.error, one.refusals) for one in planned.tables]
    return planned


def pack(subject):
    """Pack all small files of a table; one round is enough."""
    planned = plan(subject.table, "1MiB", "1MiB")
    assert ("sizes", ()) == (get_step(planned).purpose, get_step(planned).columns)
    assert_done(apply_here(planned))
    assert () == plan(subject.table, "1MiB", "1MiB").tables[0].steps
    return subject.table.last_instant()


@pytest.fixture(scope="module")
def shelf(real_hudi, tmp_path_factory):
    return SubjectCache(real_hudi, tmp_path_factory.mktemp("shelf"), pack)


@pytest.mark.parametrize("shape", [*PACKED, *map(long, OTHERS)], ids=str)
def test_packed_tables_are_read_as_before_and_written_on(shelf, shape):
    clustered_checks.check_same_answers(shelf, shape)
    clustered_checks.check_one_write(shelf, shape)


def rows(time, keys):
    """Rows whose text does not compress."""
    return [
        (key, key[0], time, hashlib.sha256(f"{key}{time}".encode()).hexdigest(), float(time))
        for key in keys
    ]


@pytest.fixture
def make(library):
    """Return a function that returns Hudi and a new copy of a table."""

    def copy(version, folder, *, merge_on_read):
        variant = Variant(version=version, name="mor" if merge_on_read else "cow")
        return library.table(variant, folder / "t", write_large_and_small)

    return copy


def write_large_and_small(hudi, path, variant):
    """Write a large file in one partition and small ones in another."""
    options = INDEXES | FEW_GROUPS | {"hoodie.parquet.small.file.limit": "0"}
    table = hudi.table(path, merge_on_read=variant.name == "mor", options=options)
    hudi.write(table, rows(0, (f"a{number:04d}" for number in range(WIDE))), "bulk_insert")
    for part in range(3):
        hudi.write(table, rows(part, (f"b{part}{number:03d}" for number in range(100))), "insert")
    hudi.write(table, rows(9, (f"b{part}001" for part in range(3))))
    return table


def base_sizes(table):
    state = reconciler.observe(reconciler.load_specs(table.path.parent / "t.yaml")[0])
    candidates = find_candidates(state)
    paths = candidates.view.files.partitions
    sizes = {path: [] for path in paths}
    for partition, size in zip(candidates.partition, candidates.base.tolist(), strict=True):
        sizes[paths[partition]].append(size)
    return sizes


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        ("1.2.0", True),
        ("0.15.0", False),
        long("0.15.0", True),
        long("1.0.2", False),
        long("1.0.2", True),
        long("1.2.0", False),
    ],
)
def test_split_tables_are_read_as_before_and_written_on(make, tmp_path, version, merge_on_read):
    hudi, table = make(version, tmp_path, merge_on_read=merge_on_read)
    before = hudi.rows(table)
    for _ in range(3):
        planned = plan(table, "60KiB", "40KiB")
        if not planned.tables[0].steps:
            break
        assert_done(apply_here(planned))
    sizes = base_sizes(table)

    assert () == plan(table, "60KiB", "40KiB").tables[0].steps
    assert len(sizes["a"]) > 1
    assert {"a": 0, "b": 1} == {
        path: sum(size < 40 * 1024 for size in found) for path, found in sizes.items()
    }
    assert max(map(max, sizes.values())) <= 120 * 1024
    assert before == hudi.rows(table) == hudi.rows(table, metadata=True)
    some = "id in ('a0007', 'a3999', 'b1001')"
    assert [row for row in before if row[0] in some] == hudi.rows(table, metadata=True, where=some)

    later = rows(20, ["a0007", "a3999", "b1001", "a9999"])
    hudi.write(table, later, options=COMPACT_METADATA)
    hudi.clean(table, keep_versions(1))
    expected = {row[0]: row[3] for row in before} | {row[0]: row[3] for row in later}
    assert expected == {row[0]: row[3] for row in hudi.rows(table, metadata=True)}
    assert hudi.listing(table) == directory_listing(table.path)


def test_tiny_files_are_refused_and_declared_sizes_reached_by_the_command_line(
    make, spark, tmp_path, capsys
):
    del spark  # the command uses this session
    hudi, table = make("1.2.0", tmp_path, merge_on_read=True)
    reviewed = tmp_path / "plan.json"
    before, old = hudi.rows(table), table.instants()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notes, "LEAST_OUTPUT_BYTES", 64 * 1024)  # other tests make smaller files
        assert 3 == run("plan", declare(table, "4KiB", "2KiB"), "-o", reviewed)
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"files\.target: 4KiB would make \d+ files from \d+ file slice", said), said
    assert "raise files.target, for example to 120MiB" in said
    assert 3 == run("apply", reviewed)
    assert old == table.instants()

    spec = declare(table, "60KiB", "40KiB")
    assert 0 == run("plan", spec, "-o", reviewed)
    assert "are below files.small, 40KiB" in " ".join(capsys.readouterr().out.split())
    assert 0 == run("apply", reviewed)
    assert 1 == len(table.instants(".replacecommit"))
    assert before == hudi.rows(table) == hudi.rows(table, metadata=True)
    capsys.readouterr()
    assert 0 == run("plan", spec)
    assert "Nothing to apply" in capsys.readouterr().out
