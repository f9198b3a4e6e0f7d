"""Specs of tables in a store, and the environment ``test`` that says how it is reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {url}/{name}
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {{provider: none}}}}
"""


def write_specs(folder: Path, url: str, names: Iterable[str], options: Mapping[str, Any]) -> None:
    """Write ``specs`` and ``environments`` into a folder; ``options``: of the storage."""
    (folder / "specs").mkdir()
    for name in names:
        (folder / "specs" / f"{name}.yaml").write_text(SPEC.format(name=name, url=url))
    environment = {
        "apiVersion": "reconciler/v1",
        "kind": "Environment",
        "metadata": {"name": "test"},
        "spec": {"storageOptions": dict(options)},
    }
    (folder / "environments").mkdir()
    (folder / "environments" / "test.yaml").write_text(yaml.safe_dump(environment))
