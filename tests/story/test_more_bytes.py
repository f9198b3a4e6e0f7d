"""A clustering helps some queries and harms others: the plan names those that it harms."""

from __future__ import annotations

import reconciler
from tests.crash.drill import NOW
from tests.plain_tables import make_orders, write_table

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 16KiB, small: 1KiB}}
  clustering: {{columns: [amount]}}
  queries:
    - {{name: one customer, where: "customer = 471"}}
    - {{name: dear ones, where: "amount > 990"}}
    - {{name: cheap ones, where: "amount < 5"}}
"""


def test_a_query_that_will_read_more_bytes_is_a_warning(tmp_path):
    write_table(tmp_path / "t", {"": make_orders(4000, 8, sorted_by="customer")})
    (tmp_path / "spec.yaml").write_text(SPEC.format(path=tmp_path / "t"))
    (table,) = reconciler.plan(reconciler.load_specs(tmp_path / "spec.yaml"), now=NOW).tables
    warned = [note.because for note in table.warnings if note.rule == "moreBytes"]
    worse = [p["query"] for p in table.predictions if p["bytesAfter"] > 1.1 * p["bytesBefore"]]

    assert ["cluster"] == [step.kind for step in table.steps]
    assert ["one customer"] == worse
    assert 1 == len(warned)
    assert warned[0].startswith(
        "query 'one customer' is predicted to read more bytes after the clustering: "
    )


def test_what_all_queries_together_lose_by_is_not_rewritten(tmp_path):
    """The ranges on the clustering column alone promise a gain to the one query on it."""
    write_table(tmp_path / "t", {"": make_orders(4000, 8, sorted_by="customer")})
    more = "".join(
        f'    - {{name: customer {number}, where: "customer = {number}"}}\n'
        for number in range(100, 3000, 500)
    )
    text = SPEC.format(path=tmp_path / "t") + more
    (tmp_path / "spec.yaml").write_text(text)
    (table,) = reconciler.plan(reconciler.load_specs(tmp_path / "spec.yaml"), now=NOW).tables
    (reason,) = [note.because for note in table.warnings if note.rule == "nothingToDo"]

    assert () == table.steps
    assert "a declared query reads 2.6 files now and" in reason
    assert "0 % fewer (within gainAbove 0.2)" in reason
