"""Files that a clustering reads, removed by another run while it works."""

from __future__ import annotations

import pytest

from reconciler.hudi.files.names import BaseName
from tests.crash.drill import list_traces
from tests.crash.test_archiving_beside import list_pending, make_drill
from tests.crash.write_drill import (
    LATE,
    encode_completed,
    make_completed_name,
    put_timeline_file,
)
from tests.storage_wrappers import RecordingStorage

VERSIONS = pytest.mark.parametrize("version", [6, 9])


@pytest.fixture
def it(tmp_path, version):
    return make_drill(tmp_path, "cluster", version)


def find_newest(it):
    return max(it.table.glob("p=a/*.parquet"), key=lambda file: BaseName.parse(file.name).instant)


def supersede(it):
    """Write the newest file of p=a again, as a writer that updates groups under clustering."""
    old = find_newest(it)
    name = BaseName.parse(old.name)
    path = f"p=a/{name.file_id}_{name.token}_{LATE}{name.extension}"
    (it.table / path).write_bytes(old.read_bytes())
    stat = {"fileId": name.file_id, "path": path, "prevCommit": name.instant}
    record = {
        "partitionToWriteStats": {"p=a": [stat]},
        "operationType": "UPSERT",
        "extraMetadata": {},
    }
    data = encode_completed(it, record, "HoodieCommitMetadata")
    put_timeline_file(it, make_completed_name(it, LATE, "commit"), data)


def act_before_rows_are_read(act):
    """Return storage that calls ``act`` before the first rows of p=a are read for new files."""
    seen = []

    class Acting(RecordingStorage):
        is_begun = False

        def create(self, path, data):
            super().create(path, data)
            if path.endswith(".inflight") and "metadata" not in path:
                type(self).is_begun = True

        def read_range(self, path, start, length):
            if self.is_begun and not seen and path.startswith("p=a/"):
                seen.append(path)
                act()
            return super().read_range(path, start, length)

    Acting.seen = seen
    return Acting


@VERSIONS
def test_a_clustering_whose_input_was_written_again_and_cleaned_is_stale(it):
    plan, old = it.plan(), find_newest(it)

    def clean():
        supersede(it)
        old.unlink()

    around = act_before_rows_are_read(clean)
    result = it.apply(plan, around=around)
    (told,) = result.tables

    assert around.seen
    assert 4 == result.exit_code
    assert f"p=a/{old.name}: was removed after the clustering was planned: commit" in told.error
    assert "has written to its file group" in told.error
    assert told.error.endswith("meanwhile; plan again")
    assert ([], []) == (list_pending(it), list_traces(it.table))


@VERSIONS
def test_a_clustering_whose_input_is_lost_is_an_error(it):
    plan, old = it.plan(), find_newest(it)
    around = act_before_rows_are_read(old.unlink)
    result = it.apply(plan, around=around)
    (told,) = result.tables

    assert around.seen
    assert 1 == result.exit_code
    assert told.error.endswith(
        f"p=a/{old.name}: was removed after the clustering was planned; plan again"
    )
    assert ([], []) == (list_pending(it), list_traces(it.table))
