"""Orphan files in tables of tests: copies of base files under the name of an unknown write."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import reconciler
from reconciler.spec.model import TableSpec

#: when orphan files of tests were written; later than no clock
OLD = datetime(2024, 1, 1, tzinfo=UTC)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  {more}
  concurrency: {{lock: {{provider: {lock}}}}}
"""
DECLARED = "orphans: {olderThan: 3d}"


def add_orphan(table: Path, instant: str, *, group: str = "o", partition: str = "") -> str:
    """Copy the table's first base file under another write's name, and return its path."""
    source = min(path for path in table.rglob("*.parquet") if ".hoodie" not in path.parts)
    path = table / partition / f"{group}_0-0-0_{instant}.parquet"
    shutil.copyfile(source, path)
    make_old(path)
    return str(path.relative_to(table))


def make_old(path: Path, moment: datetime = OLD) -> None:
    os.utime(path, (moment.timestamp(),) * 2)


def write_spec(table: Path, *, more: str = DECLARED, lock: str = "filesystem") -> TableSpec:
    """Write a spec beside a table, and load it."""
    file = table.parent / "spec.yaml"
    file.write_text(SPEC.format(path=table, more=more, lock=lock))
    (spec,) = reconciler.load_specs(file)
    return spec
