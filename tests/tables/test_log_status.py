"""What a status says of the log files of tables that real Hudi wrote."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from reconciler import api
from reconciler.reader.slice_selection import pick_slices
from reconciler.render.prometheus import status_prometheus
from reconciler.render.status import status_text
from reconciler.render.terminal import Terminal
from reconciler.state import oldest_log_reader
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.our_compaction import find_timeline, make_spec
from tests.rewrite_jobs import unpack_table
from tests.selection import long

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def make_table(name, part, folder):
    path = unpack_table(name, folder)
    return path if part is None else path.parent / part


def status_of(path, more=""):
    (found,) = api.status([make_spec(path, more=more)], now=NOW)
    assert found.error is None
    return found


def metrics_of(status):
    found = {}
    for line in status_prometheus([status], observed_at=NOW).splitlines():
        name = line.partition("{")[0]
        if "_log_" in name and not line.startswith("#"):
            found[name] = float(line.rpartition(" ")[2])
    return found


def find_written(path, logs):
    """The writes of some log files of version 6, as the timeline tells them."""
    instants = []
    for file in find_timeline(path).glob("*.deltacommit"):
        for stats in json.loads(file.read_bytes())["partitionToWriteStats"].values():
            instants += [file.name.partition(".")[0] for stat in stats if stat["path"] in logs]
    return instants


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("compacting/0.15.0", "pending"),
        long("compacting/1.0.2", "pending"),
        ("v9_mor_part", None),
        long("v6_lazy_mor_tls", None),
        long("reading/inserts_into_logs_0.15.0", None),
    ],
)
def test_log_files_are_those_that_a_read_merges(name, part, tmp_path):
    path = make_table(name, part, tmp_path)
    picked = pick_slices(observe(open_storage(str(path)), None, observed_ms=0))
    files = picked.files
    logs = [files.locate_file(row) for row in picked.logs.tolist()]
    bases = [files.locate_file(row) for row in picked.base.tolist() if row >= 0]
    found = status_of(path).logs
    total = sum(size for _, size in logs), sum(size for _, size in bases)
    by_part = {
        one: [
            sum(size for name, size in some if name.startswith(f"{one}/")) for some in (logs, bases)
        ]
        for one in files.partitions
        if any(name.startswith(f"{one}/") for name, _ in logs)
    }
    written = [log.rpartition("/")[2].split("_")[1].split(".")[0] for log, _ in logs]
    if name.endswith("0.15.0") or name.startswith("v6"):
        written = find_written(path, {log for log, _ in logs})

    assert (len(logs), *total) == (found.files, found.bytes, found.base_bytes)
    assert (int(picked.has_logs.sum()), len(picked)) == (found.slices, found.of_slices)
    assert (min(written), True) == (found.oldest, found.is_oldest_exact)
    worst = found.worst
    assert [worst.bytes, worst.base_bytes] == by_part[worst.partition]
    if total[1]:
        assert worst.bytes_per_base_byte == round(max(a / b for a, b in by_part.values()), 6)
        assert found.bytes_per_base_byte == round(total[0] / total[1], 6)
    else:
        assert (None, None) == (worst.bytes_per_base_byte, found.bytes_per_base_byte)


def test_the_age_of_a_log_file_of_version_6_is_at_least_what_the_timeline_tells(tmp_path):
    path = make_table("compacting/0.15.0", "pending", tmp_path)
    first = min(find_timeline(path).glob("*.deltacommit")).name.partition(".")[0]
    exact = status_of(path)
    for file in find_timeline(path).glob(f"{first}.*"):
        file.unlink()  # as if it was archived: log files may have been written before it
    found = status_of(path)

    assert exact.logs.oldest == found.logs.oldest
    assert (True, False) == (exact.logs.is_oldest_exact, found.logs.is_oldest_exact)
    text = " ".join(status_text([found], Terminal()).split())
    assert "log files 8 log files, 7.1 KiB in 3 of 5 file slices; 0.32 bytes per base byte" in text
    assert "; the oldest is at least 2.6 hours old" in text
    assert " most per base byte in b: 3 log files, 2.6 KiB; 0.57 bytes per base byte" in text


def test_writes_are_read_only_until_the_oldest_log_file_is_found(tmp_path, monkeypatch):
    path = make_table("compacting/0.15.0", "pending", tmp_path)
    monkeypatch.setattr(oldest_log_reader, "_MAX_WRITES", 1)  # the insert before all log files
    found = status_of(path).logs

    assert (None, None, False) == (found.oldest, found.oldest_age_seconds, found.is_oldest_exact)
    monkeypatch.setattr(oldest_log_reader, "_MAX_WRITES", 2)
    assert status_of(path).logs.oldest


def test_a_damaged_write_leaves_the_age_unknown(tmp_path):
    path = make_table("compacting/0.15.0", "pending", tmp_path)
    oldest = status_of(path).logs.oldest
    (find_timeline(path) / f"{oldest}.deltacommit").write_bytes(b"{")

    assert status_of(path).logs.oldest is None


def test_metrics_have_log_files_per_base_byte_and_the_age(tmp_path):
    path = make_table("v9_mor_part", None, tmp_path)
    status = status_of(path)
    oldest = datetime.strptime(status.logs.oldest[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)

    assert metrics_of(status) == {
        "reconciler_log_files": 6,
        "reconciler_log_bytes": 6950,
        "reconciler_log_bytes_per_base_byte": 0.015488,
        "reconciler_log_bytes_per_base_byte_worst_partition": 0.429282,
        "reconciler_oldest_log_age_seconds": (NOW - oldest) // timedelta(seconds=1),
    }


def test_log_files_without_base_files_are_infinitely_many(tmp_path):
    path = make_table("reading/inserts_into_logs_0.15.0", None, tmp_path)
    found = metrics_of(status_of(path))

    assert float("inf") == found["reconciler_log_bytes_per_base_byte"]
    assert float("inf") == found["reconciler_log_bytes_per_base_byte_worst_partition"]


def test_a_table_that_is_copied_on_write_has_no_log_status(tmp_path):
    status = status_of(make_table("v9_cow_part", None, tmp_path))

    assert (None, {}) == (status.logs, metrics_of(status))


def test_many_log_files_alone_are_no_drift_and_no_illness(tmp_path):
    path = make_table("compacting/1.2.0", "done", tmp_path)
    free = status_of(path)
    due = status_of(path, "  compaction: {afterDeltaCommits: 1}\n")

    assert ("in sync", "True") == (free.sync, free.condition("Healthy").status)
    assert ("drifted", "True") == (due.sync, due.condition("Healthy").status)
    assert due.condition("Synced").message.startswith("compaction.afterDeltaCommits: 2 file slices")
