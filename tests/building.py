"""Hudi's own index, built for a table of a test as an apply builds it."""

from __future__ import annotations

from datetime import UTC, datetime

import reconciler
from reconciler import world
from reconciler.apply.column_stats import build_column_stats
from reconciler.apply.executor import InProcess
from reconciler.apply.progress import Silent
from reconciler.apply.table import Tools, open_table
from reconciler.storage.open import open_storage

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  index: {{columns: [{columns}], hudi: build}}
  concurrency: {{lock: {{provider: filesystem}}, staleAfter: 1h}}
"""


def spec_of(path, columns):
    """A spec in a file beside the table."""
    file = path.parent / f"{path.name}.yaml"
    file.write_text(SPEC.format(name=path.name, path=path, columns=", ".join(columns)))
    (spec,) = reconciler.load_specs(file)
    return spec


def opened(path, columns, *, around=lambda storage: storage, clock=None, **more):
    """A table as an apply holds it, and its first look; ``around`` wraps its storage."""

    def opener(ref, options=None):
        del options
        return around(open_storage(ref))

    tools = Tools(
        open_storage=opener,
        executor=InProcess(opener),
        clock=clock or world.SystemClock(),
        process=world.process(),
        new_token=world.token,
        progress=Silent(),
        now=datetime.now(UTC),
        **more,
    )
    spec = spec_of(path, columns)
    (plan,) = reconciler.plan(spec, now=tools.now).tables
    assert (None, ()) == (plan.error, plan.refusals)
    return open_table(plan, spec, opener(str(path)), "sha256:0", tools)


def build(path, columns, **how):
    """Build it, and give what was built."""
    table, look = opened(path, columns, **how)
    return build_column_stats(table, columns, look)
