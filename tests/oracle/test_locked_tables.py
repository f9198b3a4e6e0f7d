"""Two processes of reconciler and real Hudi at one table on S3: no row is lost, by any lock."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import reconciler
from reconciler.plans.document import dump_plan
from tests.oracle.bundles import BundleUnavailableError
from tests.oracle.locked_tables import CASES, locked_table
from tests.selection import rounds
from tests.servers.s3 import KEY, SECRET

pytestmark = [pytest.mark.oracle, pytest.mark.long]

ROUNDS = rounds("LOCK_ROUNDS", few=1, many=3)
#: what Hudi can execute
DELEGATED = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  files: {target: 1MiB, small: 512KiB}
  clustering: {columns: [ts], curve: linear, mapping: direct, when: always}
  retention: {commits: 1}
  concurrency: {lock: LOCK, staleAfter: 1h}
"""


@pytest.fixture
def open_table(s3_bucket, tmp_path, monkeypatch):
    """``open_table(lock, version)``: a table on S3, its lock's server and its writers."""
    for name, value in (("LAKE_KEY", KEY), ("LAKE_SECRET", SECRET)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    with ExitStack() as running:

        def begin(lock, version, **more):
            folder = tmp_path / "project"
            try:
                table = locked_table(lock, version, s3_bucket, folder, **more)
                return running.enter_context(table), folder
            except BundleUnavailableError as problem:
                pytest.fail(str(problem))

        yield begin


@pytest.mark.parametrize(("lock", "version"), CASES)
def test_no_row_is_lost_and_one_holds_the_lock_at_a_time(open_table, lock, version):
    table, _ = open_table(lock, version)
    for number in range(1, ROUNDS + 1):
        table.run_round(number)
    print(*table.log, sep="\n")


@pytest.mark.parametrize(("lock", "version"), CASES)
def test_hudi_executes_a_plan_under_the_lock(open_table, lock, version):
    table, folder = open_table(lock, version, spec=DELEGATED, names=())
    for number in (1, 2):
        table.write_alone(number)
    plan = reconciler.plan(reconciler.load_specs(folder / "orders.yaml", env="prod"))
    (folder / "plan.json").write_bytes(dump_plan(plan))
    result = table.hudi.reconcile(folder / "plan.json")

    assert result["exitCode"] == 0, result
    outcomes = {(one["kind"], one["how"]) for one in result["tables"][0]["outcomes"]}
    assert {("cluster", "completed"), ("clean", "completed")} <= outcomes
    table.assert_rows()
    table.write_alone(3)
    table.assert_rows()
