"""What we write into an archive is what real Hudi wrote there for the same instants."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.hudi.timeline.archive_writer_v2 import merge_lsm_files
from reconciler.hudi.timeline.history_manifest import (
    HistoryFile,
    HistoryManifest,
    choose_history_removals,
    choose_kept_versions,
    find_current_version,
    list_versions,
    make_manifest_name,
)
from tests.trees import unpack

TABLES = Path(__file__).parent
#: tables whose history Hudi merged whenever three files of a level were there
HISTORIES = ("v8_mor_nopart", "v9_cow_nopart")


@pytest.fixture(params=HISTORIES)
def history(request, tmp_path):
    table = unpack(TABLES / f"{request.param}.zip", tmp_path, hollow=True)
    (folder,) = table.glob("*/.hoodie/timeline/history")
    return folder


def load_manifest(folder, version):
    path = folder / make_manifest_name(version)
    return HistoryManifest.parse(path.read_bytes(), str(path))


def read_rows(data):
    return pq.read_table(pa.BufferReader(data)).to_pylist()


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_manifests_have_the_bytes_of_hudi(history):
    versions = list_versions(names(history))

    assert len(versions) == 4
    for version in versions:
        manifest = load_manifest(history, version)
        assert (history / make_manifest_name(version)).read_bytes() == manifest.encode()


def test_we_merge_the_files_that_hudi_merged_into_the_same_rows(history):
    current = find_current_version(names(history), (history / "_version_").read_bytes())
    before, after = load_manifest(history, current - 1), load_manifest(history, current)
    merge = before.choose_merge(0, batch=3)
    paths = [history / file.name for file in merge.sources]
    merged = merge_lsm_files((str(path), path.read_bytes()) for path in paths)
    of_hudi = history / merge.target

    assert read_rows(of_hudi.read_bytes()) == read_rows(merged)
    assert after == before.add(
        HistoryFile(name=merge.target, size=of_hudi.stat().st_size), merge.sources
    )
    assert None is before.choose_merge(0, batch=4)


def test_a_footer_says_what_that_of_hudi_says(history):
    path = min(history.glob("*_1.parquet"))
    of_hudi = pq.read_metadata(path)
    ours = pq.read_metadata(pa.BufferReader(merge_lsm_files([(str(path), path.read_bytes())])))

    assert of_hudi.metadata == ours.metadata
    assert of_hudi.schema.to_arrow_schema() == ours.schema.to_arrow_schema()


def test_what_hudi_kept_stays(history):
    versions = choose_kept_versions(list_versions(names(history)), merges=1)
    kept = {version: load_manifest(history, version) for version in versions}
    stale = ["manifest_1", "1_1_0.parquet"]
    removals = choose_history_removals([*names(history), *stale], kept)

    assert (("manifest_1",), ("1_1_0.parquet",)) == (removals.manifests, removals.files)
    assert not choose_history_removals([*names(history), "1_1_0.parquet"], kept).files
