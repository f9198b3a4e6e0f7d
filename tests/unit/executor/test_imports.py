"""What is imported: by a worker that deletes files, and by an apply before it has a step to run."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from reconciler.executor import step_runs
from reconciler.plans.model import Step
from tests.trees import unpack

TABLES = Path(__file__).parents[2] / "cases" / "clean"

DELETING = """\
import sys
import reconciler.executor.spark
import reconciler.storage.open
heavy = {'numpy', 'pyarrow', 'pandas', 'fastavro', 'yaml', 'typer', 'rich', 'jsonschema'}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_worker_that_deletes_files_imports_nothing_but_python():
    done = subprocess.run(
        [sys.executable, "-c", DELETING], capture_output=True, text=True, check=True
    )

    assert "[]\n" == done.stdout


STARTING = """\
import sys
import reconciler.executor.run
rooms = {'archive', 'clean', 'cluster', 'compact', 'expiry', 'index'}
names = [name for name in sys.modules if name.startswith('reconciler.executor.')]
print([name for name in names if name.split('.')[2] in rooms])
"""


def test_an_apply_imports_the_code_of_the_steps_that_it_has():
    """All kinds of steps together take a tenth of the time of a small clean."""
    done = subprocess.run(
        [sys.executable, "-c", STARTING], capture_output=True, text=True, check=True
    )

    assert "[]\n" == done.stdout


APPLYING = """\
import sys
from pathlib import Path
import reconciler
from reconciler.executor import step_runs
import_code = step_runs.import_step_code

def list_code():
    rooms = ('reconciler.', 'fastavro', 'pyarrow.parquet')
    return {name for name in sys.modules if name.startswith(rooms)}

def import_and_tell(tables):
    import_code(tables)
    print(*sorted(list_code()))

import reconciler.executor.run as run
run.import_step_code = import_and_tell
result = reconciler.apply(reconciler.plan(reconciler.load_specs('orders.yaml')))
print(result.exit_code, *sorted(list_code()))
"""
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: table
  timezone: UTC
  concurrency: {lock: {provider: filesystem}}
  retention: {commits: 2}
"""


CLUSTERED = SPEC.replace("retention: {commits: 2}", "clustering: {columns: [id], when: always}")
REWRITES = {"reconciler.executor.cluster.run", "reconciler.rewrite.local"}


@pytest.mark.parametrize(
    ("spec", "needed", "needless"),
    [(SPEC, {"reconciler.executor.clean.run"}, REWRITES), (CLUSTERED, REWRITES, set())],
    ids=["clean", "clustering"],
)
def test_all_code_is_imported_before_a_step_runs(tmp_path, spec, needed, needless):
    """A SIGTERM that Python drops in an import would not end the apply before a table changes."""
    unpack(TABLES / "cow_basic__1.2.0" / "table.zip", tmp_path / "table")
    (tmp_path / "orders.yaml").write_text(spec)
    done = subprocess.run(
        [sys.executable, "-c", APPLYING], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    before, after = (line.split() for line in done.stdout.splitlines())

    assert ["0", *before] == after
    assert needed == (needed | needless) & {*before}


def test_every_kind_of_step_has_code():
    assert set(get_args(Step)) == set(step_runs._CODE)
    for names in step_runs._CODE.values():
        for name in names:
            importlib.import_module(name)


SPARK = """\
import sys
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from reconciler.cli import apply_executors
starting = SimpleNamespace(cancel_jobs=None, raise_failure=None)
apply_executors.start_spark_session = lambda *_, **__: nullcontext(starting)
with ExitStack() as stack:
    apply_executors._SparkOnDemand(None, (), None, stack).open()
print(*sorted(name for name in sys.modules if name.endswith('.spark')))
"""


def test_the_code_that_works_on_spark_is_imported_when_spark_starts():
    done = subprocess.run([sys.executable, "-c", SPARK], capture_output=True, text=True, check=True)

    expected = {f"reconciler.{room}.spark" for room in ("executor", "index", "rewrite")}
    assert expected <= {*done.stdout.split()}
