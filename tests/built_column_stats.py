"""Build Hudi's own column statistics for a test table, like an apply."""

from __future__ import annotations

from datetime import UTC, datetime

import reconciler
from reconciler import runtime
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.index.column_stats import build_column_stats
from reconciler.executor.progress import Progress
from reconciler.executor.session import ApplyContext, open_apply_session
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


def write_spec(path, columns):
    """Write a spec file next to the table and load it."""
    file = path.parent / f"{path.name}.yaml"
    file.write_text(SPEC.format(name=path.name, path=path, columns=", ".join(columns)))
    (spec,) = reconciler.load_specs(file)
    return spec


def open_test_session(path, columns, *, around=lambda storage: storage, clock=None, **more):
    """Open a table like an apply; return the session and its first observation.

    ``around``: wraps the storage.
    """

    def opener(ref, options=None):
        del options
        return around(open_storage(ref))

    tools = ApplyContext(
        open_storage=opener,
        deleter=LocalDeleter(opener),
        clock=clock or runtime.SystemClock(),
        process=runtime.current_process(),
        new_token=runtime.new_token,
        progress=Progress(),
        now=datetime.now(UTC),
        **more,
    )
    spec = write_spec(path, columns)
    (plan,) = reconciler.plan(spec, now=tools.now).tables
    assert (None, ()) == (plan.error, plan.refusals)
    return open_apply_session(plan, spec, opener(str(path)), "sha256:0", tools)


def build(path, columns, **how):
    """Build column statistics and return the result."""
    table, look = open_test_session(path, columns, **how)
    return build_column_stats(table, columns, look)
