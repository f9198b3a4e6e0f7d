"""What a worker that deletes files has to have: Python, and nothing that only a driver has."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\
import sys
import reconciler.executor.spark
import reconciler.storage.open
heavy = {'numpy', 'pyarrow', 'pandas', 'fastavro', 'yaml', 'typer', 'rich', 'jsonschema'}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_worker_that_deletes_files_imports_nothing_but_python():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert "[]\n" == done.stdout
