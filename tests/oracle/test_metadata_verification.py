"""Real Hudi's tables are verified, and real Hudi goes on with them after a repair."""

from __future__ import annotations

import json

import jsonschema
import pytest

from reconciler.hudi.load import load_properties
from reconciler.storage.open import open_storage
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.verification.verify import verify_metadata
from tests.command import run
from tests.metadata_lies import MetadataLiar
from tests.oracle.hudi import FEW_GROUPS, INDEXES, directory_listing, keep_commits
from tests.oracle.prepared_tables import Variant
from tests.selection import long
from tests.unit.render.test_verification import SCHEMA

pytestmark = pytest.mark.oracle
VERSIONS = ("0.15.0", "1.2.0", "1.0.2")
LIES = ("files", "ranges", "keys")
#: more indexes than Hudi enables by default
OPTIONS = {**INDEXES, **FEW_GROUPS}
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  metadata: {{verify: each-apply, repair: drop}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def verify(table):
    return verify_metadata(ReadOnlyStorage(open_storage(str(table.path))), None)


def write_verifiable(hudi, path, variant):
    """Write, update and delete rows in three partitions, and clean old files."""
    table = hudi.table(path, merge_on_read=variant.name == "mor")
    hudi.write(table, [(f"{p}{n}", p, 1) for p in "abc" for n in range(4)], options=OPTIONS)
    hudi.write(table, [("a1", "a", 2), ("b1", "b", 2), ("d1", "d", 2)], options=OPTIONS)
    hudi.write(table, [("a2", "a", 3)], "delete", options=OPTIONS)
    hudi.write(table, [("a3", "a", 4), ("c1", "c", 4)], options=OPTIONS)
    hudi.clean(table, {**keep_commits(1), **OPTIONS})
    return table


def lie(table, how):
    """Make one entry of the metadata table wrong."""
    liar = MetadataLiar(table.path)
    base = max(table.path.glob("a/*.parquet"), key=lambda path: path.name.split("_")[-1])
    if how == "files":
        liar.list_file("a", base.name.replace("-0_", "-9_", 1), 10)
    elif how == "ranges":
        liar.set_range("a", base.name, "ts", 5000, 6000)
    else:
        liar.set_location("a1", "b", max(table.path.glob("b/*.parquet")).name)


@pytest.mark.parametrize(
    ("version", "how", "merge_on_read"),
    [
        (version, how, merge)
        if (version, how, merge)
        in {("0.15.0", "files", True), ("1.2.0", "ranges", False), ("1.0.2", "keys", True)}
        else long(version, how, merge)
        for version in VERSIONS
        for how in LIES
        for merge in (False, True)
    ],
)
def test_hudi_goes_on_with_a_table_whose_metadata_was_repaired(
    version, how, merge_on_read, library, tmp_path, capsys
):
    variant = Variant(version=version, name="mor" if merge_on_read else "cow")
    hudi, table = library.table(variant, tmp_path / "t", write_verifiable)
    assert () == verify(table).differences
    rows = hudi.rows(table)
    lie(table, how)
    spec = tmp_path / "t.yaml"
    spec.write_text(SPEC.format(path=table.path))

    assert 3 == run("verify", spec, "--format", "json")
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert 1 == len(document["tables"][0]["differences"])
    assert 0 == run("plan", spec, "-o", tmp_path / "plan.json")
    assert 0 == run("apply", tmp_path / "plan.json")
    assert 0 == run("verify", spec)

    assert rows == hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    assert rows != hudi.rows(table, metadata=True, where="n < 0")
    hudi.write(table, [("a1", "a", 9), ("e1", "e", 9)], options=OPTIONS)
    rebuilt = load_properties(open_storage(str(table.path))).metadata_partitions
    assert {"files", "column_stats", "record_index", "bloom_filters"} <= set(rebuilt)
    if (version, how) == ("0.15.0", "ranges"):
        # of an index that it adds to a metadata table, it names the old files by absolute paths
        missing = {(d.metadata_partition, d.kind) for d in verify(table).differences}
        assert {("column_stats", "missing")} == missing
        spec.write_text(spec.read_text().replace("repair: drop", "repair: rebuild"))
        assert 0 == run("plan", spec, "-o", tmp_path / "plan.json")
        assert 0 == run("apply", tmp_path / "plan.json")
    assert () == verify(table).differences
    assert directory_listing(table.path) == hudi.listing(table)
    hudi.clean(table, {**keep_commits(1), **OPTIONS})
    last = hudi.write(table, [("b2", "b", 10)], options=OPTIONS)
    hudi.rollback(table, last)
    hudi.archive(table, OPTIONS)
    assert hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)
    assert () == verify(table).differences
