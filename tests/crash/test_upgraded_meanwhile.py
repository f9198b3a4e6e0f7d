"""Hudi upgrades a table after a run has read where its timeline is."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from reconciler.errors import StaleError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.load import load_properties, load_timeline
from tests.crash.declared_drill import make_drill
from tests.crash.drill import list_data_files, list_traces
from tests.crash.write_drill import BATCH, BEFORE, act_after
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import WriteRuns, make_rows

UPGRADED = "the table was upgraded from version {} to 9 meanwhile; run it again"


class Table:
    """A table of three commits without a metadata table, whose upgrade is simple."""

    def __init__(self, folder, version, kind="clean"):
        folder.mkdir()
        self.drill = make_drill(folder, kind, version)
        self.runs, self.version = WriteRuns(self.drill.spec), version
        self.runs.clock = self.drill.clock
        self.hoodie = self.drill.table / ".hoodie"
        self.write(make_rows(*BEFORE))
        if version == 6:
            self.change_properties(r"(table\.metadata\.partitions)=.*", r"\1=")
            shutil.rmtree(self.hoodie / "metadata")
        for number in range(2, 4):
            self.write(make_rows(*[(key, p, ts + number, x) for key, p, ts, x in BEFORE]))
        self.rows, self.files = self.runs.read_rows(), self.list_files()

    def write(self, batch, **how):
        return self.runs.write(batch, **how)

    def change_properties(self, pattern, text):
        file = self.hoodie / "hoodie.properties"
        file.write_text(re.sub(f"(?m)^hoodie.{pattern}$", f"hoodie.{text}", file.read_text()))

    def upgrade(self):
        """Upgrade to version 9, as Hudi does it under the lock."""
        if self.version == 6:
            self._move_timeline()
            self.change_properties("timeline.layout.version=1", "timeline.layout.version=2")
        self.change_properties("table.version=.", "table.version=9")

    def _move_timeline(self):
        (self.hoodie / "timeline").mkdir()
        for path in self.list_old_instants():
            data, name = path.read_bytes(), path.name
            if path.suffix == ".commit":
                record = json.loads(data)
                data = avro_container.encode_container("HoodieCommitMetadata.avsc", record)
                name = f"{name[:17]}_{int(name[:17]) + 5}.commit"
            (self.hoodie / "timeline" / name).write_bytes(data)
            path.unlink()

    def list_files(self):
        return {name for name in list_data_files(self.drill.table) if name.endswith(".parquet")}

    def list_old_instants(self):
        return [path for path in self.hoodie.iterdir() if path.name[:17].isdigit()]

    def check_nothing_is_changed(self):
        """Check that the table is as it was, and that nothing is left in the old folder."""
        storage = self.drill.storage
        timeline = load_timeline(storage, load_properties(storage))

        assert self.rows == self.runs.read_rows()
        assert self.files == self.list_files()
        assert [] == [one for one in timeline.instants if not one.is_completed]
        assert [] == list_traces(self.drill.table)
        assert self.version > 6 or [] == self.list_old_instants()


def act_before_lock(act):
    """Return storage that calls ``act`` before the lock is taken."""
    seen = []

    class Before(RecordingStorage):
        def create(self, path, data):
            if path == ".hoodie/lock" and not seen:
                seen.append(path)
                act()
            super().create(path, data)

    return Before


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize(
    "act_at",
    [
        pytest.param(act_before_lock, id="before its request"),
        pytest.param(lambda act: act_after(r"\.inflight$", act), id="before its first file"),
        pytest.param(lambda act: act_after(r"\.parquet$", act), id="before its completion"),
    ],
)
def test_a_write_of_a_table_that_is_upgraded_meanwhile_ends_and_is_undone(
    act_at, version, tmp_path
):
    it = Table(tmp_path / "it", version)

    with pytest.raises(StaleError, match=UPGRADED.format(version)):
        it.write(BATCH, around=act_at(it.upgrade))
    it.check_nothing_is_changed()
    assert "completed" == it.write(BATCH).status


def test_a_write_whose_timeline_is_elsewhere_when_it_looks_at_the_table_ends(tmp_path):
    it = Table(tmp_path / "it", 6)
    seen = []

    class Upgrades(RecordingStorage):
        def list(self, folder):
            found = super().list(folder)
            if folder == ".hoodie" and not seen:  # the session is opened
                seen.append(folder)
                it.upgrade()
            return found

    with pytest.raises(StaleError, match=UPGRADED.format(6)):
        it.write(BATCH, around=Upgrades)
    it.check_nothing_is_changed()


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("step", ["clean", "cluster"])
def test_a_step_on_a_table_that_is_upgraded_before_its_request_changes_nothing(
    step, version, tmp_path
):
    it = Table(tmp_path / "it", version, step)
    plan = it.drill.plan()
    (result,) = it.drill.apply(plan, around=act_before_lock(it.upgrade)).tables

    assert UPGRADED.format(version) in result.error
    if version == 6:  # there the old timeline shows it, before a file is deleted
        assert 4 == result.code
        it.check_nothing_is_changed()


def test_a_timeline_with_another_time_zone_is_another_one(tmp_path):
    it = Table(tmp_path / "it", 9)

    def change():
        it.change_properties("table.timeline.timezone=UTC", "table.timeline.timezone=LOCAL")

    with pytest.raises(StaleError, match="the folder or time zone of its timeline was changed"):
        it.write(BATCH, around=act_after(r"\.parquet$", change))
    it.change_properties("table.timeline.timezone=LOCAL", "table.timeline.timezone=UTC")
    it.check_nothing_is_changed()
