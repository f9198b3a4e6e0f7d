"""Ask the hosts of a session's workers which Python they run, without PySpark's own worker.

PySpark's worker ends a job at the first host with another version. Java runs the interpreter of
every executor instead, so that one error names all hosts.
"""

from __future__ import annotations

import json
import platform
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.spark.executor_wait import ExecutorsMissingError
from reconciler.spark.jobs import run_job_group
from reconciler.spark.worker_tasks import run_on_all_executors

#: what a Python prints of itself; of any version, also of 2.7
_QUESTION: Final = (
    "import json, platform, sys, sysconfig; print(json.dumps(["
    "platform.python_implementation(), '%d.%d' % sys.version_info[:2], sysconfig.get_platform(), "
    "platform.libc_ver()[0]]))"
)
#: prints the executor's host and folder, and what its Python answers
_SCRIPT: Final = (
    'cat > /dev/null; printf "%s\\t%s\\t" "$(uname -n)" "$PWD"; "$0" -c "$1" 2> /dev/null || echo'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python: its implementation, minor version and platform, and the C library it runs on."""

    implementation: str
    version: str
    platform: str
    libc: str

    def __str__(self) -> str:
        libc = f" with {self.libc}" if self.libc else ""
        return f"{self.implementation} {self.version} on {self.platform}{libc}"


def get_own_interpreter() -> Interpreter:
    """Return the Python of this process."""
    return Interpreter(
        implementation=platform.python_implementation(),
        version=f"{sys.version_info[0]}.{sys.version_info[1]}",
        platform=sysconfig.get_platform(),
        libc=platform.libc_ver()[0],
    )


def check_interpreters(context: Any, *, sends_packages: bool) -> None:
    """Raise ReconcilerError with all hosts whose Python cannot do the work of the driver's.

    That is one of another minor version, or none at all; for packages of the driver also one of
    another platform. Says nothing if the hosts cannot be asked.
    """
    own = get_own_interpreter()
    different: defaultdict[str, set[str]] = defaultdict(set)
    for host, found in ask_interpreters(context):
        if found is None:
            different["no such program"].add(host)
        elif found.version != own.version or (sends_packages and found != own):
            different[str(found)].add(host)
    if different:
        listed = "; ".join(
            f"{what} on {', '.join(sorted(hosts))}" for what, hosts in sorted(different.items())
        )
        raise ReconcilerError(
            f"Spark's workers ({context.pythonExec}) need the driver's Python, {own}, and have "
            f"{listed}; set PYSPARK_PYTHON to a Python {own.version} there, or send a packed "
            "environment with spark.archives (docs/clusters.md)"
        )


def ask_interpreters(context: Any) -> list[tuple[str, Interpreter | None]]:
    """Return the Python of each executor with its host; None where the program does not run."""
    try:
        with run_job_group(context, "reconciler: find the workers' Python", str):
            lines = run_on_all_executors(
                context,
                lambda tasks: _pipe(context, tasks, ["sh", "-c", _SCRIPT, context.pythonExec]),
                lambda line: line.split("\t")[:2],
            )
    except ExecutorsMissingError:
        raise
    except ReconcilerError:
        return []  # no sh, say: the job that checks the workers' Python then has the last word
    return parse_answers(lines)


def _pipe(context: Any, tasks: int, command: Sequence[str]) -> list[str]:
    """Run a command once per task, and return the lines that it prints."""
    jvm = context._jvm  # noqa: SLF001 (PySpark pipes through Python)
    arguments = jvm.java.util.ArrayList()
    for argument in (*command, _QUESTION):
        arguments.add(argument)
    numbers = context._jsc.sc().range(0, tasks, 1, tasks)  # noqa: SLF001
    return list(numbers.toJavaRDD().pipe(arguments).collect())


def parse_answers(lines: Iterable[str]) -> list[tuple[str, Interpreter | None]]:
    r"""Return the host of each line that executors printed, with its Python.

    >>> parse_answers(['a\t/w\t["CPython", "3.9", "linux-x86_64", "glibc"]', "b\t/w\t"])[1]
    ('b', None)
    """
    answers: list[tuple[str, Interpreter | None]] = []
    for line in lines:
        host, _, answer = line.split("\t", 2)
        answers.append((host, Interpreter(**_name_values(answer)) if answer else None))
    return answers


def _name_values(answer: str) -> dict[str, str]:
    names = ("implementation", "version", "platform", "libc")
    return dict(zip(names, json.loads(answer), strict=True))
