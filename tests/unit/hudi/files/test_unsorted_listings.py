"""Names of a folder may come in any order, as some stores list them."""

from __future__ import annotations

from reconciler.hudi.files.partition_scan import PartitionScan
from reconciler.storage.api import FolderListing

NAMES = ["b.parquet", ".hoodie_partition_metadata", "a.parquet", "..parquet"]


def test_a_partition_is_found_and_its_files_are_sorted_with_their_sizes():
    scan = PartitionScan(set())
    [found] = scan.list_partitions([FolderListing("p", NAMES, [2, 9, 1, 0])])

    assert ("p", ["..parquet", "a.parquet", "b.parquet"], [0, 1, 2]) == found
    assert {"p"} == scan.with_metafile
