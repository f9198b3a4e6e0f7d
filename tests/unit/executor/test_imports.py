"""What is imported: by a worker that deletes files, and by an apply before it has a step to run."""

from __future__ import annotations

import subprocess
import sys

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
    """All kinds of steps together take a fifth of the time of a small clean."""
    done = subprocess.run(
        [sys.executable, "-c", STARTING], capture_output=True, text=True, check=True
    )

    assert "[]\n" == done.stdout
