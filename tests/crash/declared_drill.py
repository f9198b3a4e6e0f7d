"""Drills of tables that our own writes make, with the spec of one kind of change."""

from __future__ import annotations

from tests.crash.clustering_drill import PlannedDrill
from tests.crash.write_drill import BEFORE
from tests.write_runs import WriteRuns, make_rows

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  MORE
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h}}
  table:
    {{type: COPY_ON_WRITE, version: VERSION, recordKey: [id], partitionBy: [p], ordering: [ts]}}
"""
MORE = {
    "clean": "retention: {{commits: 1}}",
    "cluster": "clustering: {{columns: [id], when: always}}",
    "write": "retention: {{commits: 9}}",
}


def make_drill(folder, kind, version):
    """Return a drill of a table that does not exist yet, with the spec of a kind of change."""
    text = SPEC.replace("MORE", MORE[kind]).replace("VERSION", str(version))
    (folder / "it").mkdir()
    return type("OurDrill", (PlannedDrill,), {"SPEC_TEXT": text})(folder / "it", {})


def write_three_times(it):
    """Write the same rows three times, each time with a greater ordering value."""
    runs = WriteRuns(it.spec)
    runs.clock = it.clock
    for number in range(3):
        runs.write(make_rows(*((key, p, ts + number, x) for key, p, ts, x in BEFORE)))
