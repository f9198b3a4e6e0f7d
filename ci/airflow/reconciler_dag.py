"""Look for drift every night, and bring tables to their specs on Saturdays, from Airflow.

Put this file into the DAGs folder. Airflow 2.4 or newer. The workers need `reconciler`, git and,
for apply, a Java on their PATH. Variables of Airflow: `reconciler_repository` (the URL to clone
the specs from), `reconciler_options` (such as `--env prod`).

How an exit code ends a task:
  0             done
  2, 4          done: there is drift; skipped items are left to the next run
  3             skipped: a step or a table was refused and the rest is done; the log says which
  5, 6          failed and retried: work is left; a lock is held or a table busy
  1, 64, other  failed at once: a retry would not help
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException

try:
    from airflow.sdk import Variable, dag, task
except ImportError:  # Airflow 2
    from airflow.decorators import dag, task
    from airflow.models import Variable

DONE = (0, 2, 4)
BLOCKED = 3
AGAIN = (5, 6)


def run(*command: str) -> None:
    """Clone the specs, run `reconciler COMMAND specs …` in them, and end as its exit code says."""
    repository = Variable.get("reconciler_repository")
    options = shlex.split(Variable.get("reconciler_options", ""))
    with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
        checkout = str(Path(folder) / "specs")
        clone = ["git", "clone", "--quiet", "--depth", "1", "--", repository, checkout]
        subprocess.run(clone, check=True)
        done = subprocess.run(
            ["reconciler", command[0], "specs", *command[1:], *options],
            cwd=checkout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    sys.stdout.write(done.stdout)
    said = f"reconciler {command[0]} ended with {done.returncode}"
    if done.returncode in DONE:
        return
    if done.returncode == BLOCKED:
        raise AirflowSkipException(f"{said}: a policy or a table's state refused a step or a table")
    if done.returncode in AGAIN:
        raise AirflowException(f"{said}: another try goes on from there")
    raise AirflowFailException(said)


@dag(
    dag_id="reconciler_drift",
    schedule="17 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["reconciler"],
    doc_md=__doc__,
)
def reconciler_drift() -> None:
    @task(execution_timeout=timedelta(hours=1))
    def drift() -> None:
        run("plan", "--detailed-exitcode")

    drift()


@dag(
    dag_id="reconciler_apply",
    schedule="43 4 * * 6",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["reconciler"],
    doc_md=__doc__,
)
def reconciler_apply() -> None:
    @task(
        execution_timeout=timedelta(hours=6),
        retries=3,
        retry_delay=timedelta(minutes=10),
        retry_exponential_backoff=True,
    )
    def apply() -> None:
        run("apply", "--auto-approve", "-l", "apply=scheduled")

    apply()


reconciler_drift()
reconciler_apply()
