"""Open a session on a table that may not exist yet, like a run that writes to it."""

from __future__ import annotations

from datetime import UTC

import reconciler
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.storage.open import open_storage
from reconciler.transaction.session import RunContext, open_session
from reconciler.writer.table_creation import make_declared_table
from tests.crash.drill import TestClock, process

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: sales.orders}}
spec:
  path: {path}
  timezone: UTC
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    {{type: {type}, version: {version}, recordKey: [id], partitionBy: [p], ordering: [ts]{more}}}
"""


def write_spec(folder, *, version=9, kind="COPY_ON_WRITE", buckets=None):
    """Write and load the spec of a table that ``write`` would create in a folder.

    ``buckets``: the number of a bucket index, None for a table without one.
    """
    file = folder / "spec.yaml"
    more = "" if buckets is None else f", index: {{type: bucket, buckets: {buckets}}}"
    file.write_text(SPEC.format(path=folder / "table", version=version, type=kind, more=more))
    (spec,) = reconciler.load_specs(file)
    return spec


def open_test_session(
    spec, *, around=lambda storage: storage, pid=1, clock=None, living=frozenset()
):
    """Open a session as one process; ``around``: wraps the storage."""
    storage = around(open_storage(spec.path))
    means = RunContext(
        open_storage=lambda ref, _options=None: around(open_storage(ref)),
        clock=clock or TestClock(),
        process=process(pid, living),
        report_wait=lambda *_said: None,
        check_stop=lambda: None,
        lock_wait_s=0,
    )
    try:
        properties = load_properties(storage)
        timeline = load_timeline(storage, properties)
    except ReconcilerError:
        properties = TableProperties.parse(
            make_declared_table(spec).properties_bytes, "hoodie.properties"
        )
        timeline = Timeline.from_files([])
    owner = means.process.make_owner(f"run-{pid}")
    return open_session(spec, storage, properties, timeline, UTC, owner=owner, context=means)
