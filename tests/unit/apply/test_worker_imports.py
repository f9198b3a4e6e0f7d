"""What a Spark worker loads: this package and nothing that a cluster may not have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import reconciler


def test_a_worker_needs_the_zipped_package_and_the_standard_library_only(tmp_path):
    package = Path(reconciler.__file__).parent
    archive = shutil.make_archive(
        str(tmp_path / "reconciler"), "zip", root_dir=package.parent, base_dir=package.name
    )
    program = (
        "import sys, pickle, reconciler, reconciler.apply.executor, reconciler.storage.open\n"
        "assert '.zip' in reconciler.__file__, reconciler.__file__\n"
        "heavy = {'numpy', 'pyarrow', 'yaml', 'fastavro', 'fsspec', 'pyspark'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": archive, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
