"""Small work on a local disk imports neither Spark nor clients of stores, and no pandas.

pyarrow would import pandas at its first conversion of a Python value.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.cli import spark
from reconciler.cli.pandas_import import allow_pandas, leave_pandas_out
from tests.trees import unpack

TABLES = Path(__file__).parents[2] / "tables"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: v8_mor_part
  timezone: UTC
  concurrency: {lock: {provider: filesystem}}
  retention: {commits: 1}
  clustering: {columns: [id], when: always}
"""
NEW = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: new}
spec:
  path: new
  timezone: UTC
  table: {type: COPY_ON_WRITE, version: 9, recordKey: [id]}
  concurrency: {lock: {provider: filesystem}}
"""


@pytest.fixture
def fresh_imports(monkeypatch):
    """Nothing of pandas is imported yet; afterwards modules and finders are as they were."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = {name: module for name, module in sys.modules.items() if is_pandas(name)}
    for name in before:
        del sys.modules[name]
    yield
    allow_pandas()
    for name in filter(is_pandas, list(sys.modules)):
        del sys.modules[name]
    sys.modules.update(before)


def is_pandas(name: str) -> bool:
    return name.partition(".")[0] == "pandas"


def can_import_pandas() -> bool:
    try:
        return importlib.import_module("pandas") is not None
    except ImportError:
        return False


@pytest.mark.parametrize(
    "arguments",
    [
        ("read", "v8_mor_part", "--where", "id = 3"),
        ("read", "v8_mor_part", "--where", "id = 3", "--explain"),
        ("plan", "orders.yaml", "-o", "plan.json"),
        ("apply", "orders.yaml", "--auto-approve"),
        ("write", "new.yaml", "rows.parquet"),
    ],
)
def test_small_work_imports_little(arguments, tmp_path):
    unpack(TABLES / "v8_mor_part.zip", tmp_path)
    (tmp_path / "orders.yaml").write_text(SPEC)
    (tmp_path / "new.yaml").write_text(NEW)
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "rows.parquet")
    command = [sys.executable, "-X", "importtime", "-m", "reconciler", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    assert done.returncode in (0, 4)  # a write of somebody else is pending, which is left alone
    assert {"pyarrow.lib", "pandas.core", "fsspec", "pyspark"} & imported == {"pyarrow.lib"}


@pytest.mark.usefixtures("fresh_imports")
def test_pandas_cannot_be_imported_until_it_is_allowed():
    leave_pandas_out()
    without = can_import_pandas()
    allow_pandas()

    assert (False, True) == (without, can_import_pandas())


@pytest.mark.usefixtures("fresh_imports")
def test_spark_may_import_pandas(monkeypatch):
    session = object()
    monkeypatch.setattr(spark, "find_running_session", lambda: session)
    leave_pandas_out()
    with spark.open_spark_session(None, {}) as found:
        assert session is found

    assert can_import_pandas()
