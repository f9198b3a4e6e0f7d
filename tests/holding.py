"""A table, there or not yet, as a run that writes to it holds it."""

from __future__ import annotations

from datetime import UTC

import reconciler
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.storage.open import open_storage
from reconciler.transaction.hold import Means, open_hold
from reconciler.writer.declared import declared_table
from tests.crash.drill import TestClock, process

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: sales.orders}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 120MiB, small: 100MiB}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table: {{type: {type}, version: {version}, recordKey: [id], partitionBy: [p], ordering: [ts]}}
"""


def spec_of(folder, *, version=9, kind="COPY_ON_WRITE"):
    """The spec of a table in a folder, that ``write`` would make."""
    file = folder / "spec.yaml"
    file.write_text(SPEC.format(path=folder / "table", version=version, type=kind))
    (spec,) = reconciler.load_specs(file)
    return spec


def held(spec, *, around=lambda storage: storage, pid=1, clock=None, living=frozenset()):
    """A hold as a process takes it; ``around`` wraps the storage."""
    storage = around(open_storage(spec.path))
    means = Means(
        open_storage=lambda ref, _options=None: around(open_storage(ref)),
        clock=clock or TestClock(),
        process=process(pid, living),
        waits=lambda *_said: None,
        check=lambda: None,
        lock_wait_s=0,
    )
    try:
        properties = load_properties(storage)
        timeline = load_timeline(storage, properties)
    except ReconcilerError:
        properties = TableProperties.parse(declared_table(spec).properties, "hoodie.properties")
        timeline = Timeline.of([])
    owner = means.process.owner(f"run-{pid}")
    return open_hold(spec, storage, properties, timeline, UTC, owner=owner, means=means)
