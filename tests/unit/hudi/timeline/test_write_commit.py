"""Compare our commit files with those that real Hudi writes for the same write."""

from __future__ import annotations

import json
import zipfile

import pytest

from reconciler.file_slices.base_file.write_stat import build_created_stat, build_merged_stat
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.write_commit import WorkloadProfile, WriteCommit
from tests.rewrite_jobs import TABLES

#: real writes by table version: an insert and an upsert, inflight and completed
WRITES = {
    6: ("v6_cow_part", ".hoodie", "20261121044344846", "20261121044439672"),
    9: ("v9_cow_part", ".hoodie/timeline", "20261121045418920", "20261121045506208"),
}


def decoded(data, version):
    if version < 8:
        return json.loads(data)
    return avro_container.decode_container(data, "HoodieCommitMetadata", "x")


def real(version, number, ending):
    name, folder, *instants = WRITES[version]
    with zipfile.ZipFile(TABLES / f"{name}.zip") as file:
        at = f"{name}/{folder}/{instants[number]}"
        (found,) = [n for n in file.namelist() if n.startswith(at) and n.endswith(ending)]
        if ending == "inflight":
            assert "savepoint" not in found
        return decoded(file.read(found), version)


def stats(record):
    return {path: list(found) for path, found in record["partitionToWriteStats"].items()}


def by_id(found):
    return sorted(found, key=lambda stat: stat["fileId"])


@pytest.mark.parametrize("version", WRITES)
@pytest.mark.parametrize("number", [0, 1], ids=["insert", "upsert"])
def test_an_inflight_file_equals_that_of_real_hudi(version, number):
    expected = real(version, number, f"{WRITES[version][2 + number]}.inflight")
    updates = {
        path: {s["fileId"]: (s["prevCommit"], s["numUpdateWrites"]) for s in some if s["fileId"]}
        for path, some in stats(expected).items()
    }
    inserts = {path: some[0]["numInserts"] for path, some in stats(expected).items()}

    ours = WorkloadProfile(operation=expected["operationType"], inserts=inserts, updates=updates)

    found = decoded(ours.encode(version=version), version)
    assert {k: by_id(v) for k, v in stats(expected).items()} == {
        k: by_id(v) for k, v in stats(found).items()
    }
    assert {k: v for k, v in expected.items() if k != "partitionToWriteStats"} == {
        k: v for k, v in found.items() if k != "partitionToWriteStats"
    }


@pytest.mark.parametrize("version", WRITES)
@pytest.mark.parametrize("number", [0, 1], ids=["insert", "upsert"])
def test_a_completed_file_equals_that_of_real_hudi(version, number):
    expected = real(version, number, ".commit")

    ours = WriteCommit(
        stats_by_partition={
            path: [ours_of(s, path) for s in some] for path, some in stats(expected).items()
        },
        operation=expected["operationType"],
        extra=expected["extraMetadata"],
    )

    found = decoded(ours.encode(version=version), version)
    assert untimed(expected) == untimed(found)


def ours_of(stat, partition):
    name = stat["path"].rpartition("/")[2]
    file = WrittenFile(
        name=name,
        rows=stat["numWrites"],
        size=stat["fileSizeInBytes"],
        least_key="a",
        greatest_key="b",
    )
    if stat["prevCommit"] == "null":
        return build_created_stat(file, partition)
    before = BaseName.parse(name)
    assert before
    return build_merged_stat(
        file,
        partition,
        previous_file=stat.get("prevBaseFile")
        or f"{before.file_id}_0-0-0_{stat['prevCommit']}.parquet",
        inserts=stat["numInserts"],
        updates=stat["numUpdateWrites"],
        deletes=stat["numDeletes"],
    )


def untimed(record):
    """Return the record without durations."""
    kept = {
        path: [{k: v for k, v in s.items() if k != "runtimeStats"} for s in some]
        for path, some in stats(record).items()
    }
    return {**record, "partitionToWriteStats": kept}
