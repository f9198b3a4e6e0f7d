"""Our table services as turns of an oracle test: plan by one block of a spec, and apply."""

from __future__ import annotations

import reconciler
from tests.oracle.our_clustering import apply_here
from tests.oracle.test_writes import Both

_SERVICES = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: "{path}"
  timezone: UTC
  {block}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def apply_block(it: Both, block: str) -> None:
    """Plan the table by one block of a spec, and apply the plan; there is nothing to do then."""
    file = it.table.path.parent / "services.yaml"
    file.write_text(_SERVICES.format(path=it.table.path, block=block))
    specs = reconciler.load_specs(file)
    plan = reconciler.plan(specs)
    assert [(None, ())] == [(one.error, one.refusals) for one in plan.tables]
    result = apply_here(plan)
    assert 0 == result.exit_code, [(t.error, t.refusals, t.outcomes) for t in result.tables]
    assert () == reconciler.plan(specs).tables[0].steps


def we_compact(it: Both) -> None:
    apply_block(it, "compaction: {afterDeltaCommits: 1}")


def we_clean(it: Both) -> None:
    apply_block(it, "retention: {commits: 1}")


def we_cluster(it: Both) -> None:
    apply_block(it, "clustering: {columns: [ts], when: always}")


def we_archive(it: Both) -> None:
    apply_block(it, "retention: {commits: 1}\n  timeline: {keep: 4..6}")
