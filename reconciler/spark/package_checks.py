"""Look on the workers of a session for the packages that their work imports.

Workers that only delete files import this, so it needs nothing but Python's standard library.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from reconciler.lazy_dataclass import dataclass
from reconciler.spark.worker_tasks import run_on_all_executors

#: the oldest versions of packages that workers may import, as in pyproject.toml
MINIMUM_VERSIONS: Final = {
    "adlfs": "2024.12",
    "fastavro": "1.9",
    "fsspec": "2024.6",
    "gcsfs": "2024.12",
    "google_crc32c": "1.5",
    "numpy": "1.26",
    "pandas": "2.2",
    "pyarrow": "17",
    "s3fs": "2024.10",
    "xxhash": "3.4",
}


@dataclass(frozen=True, slots=True)
class WorkerPackages:
    """What the Python of an executor lacks; ``folder``: where the executor runs."""

    host: str
    folder: str
    lacks: tuple[str, ...]


def ask_for_packages(
    context: Any, packages: Iterable[str], *, imports: bool
) -> list[WorkerPackages]:
    """Return what each executor of a session lacks; nothing of those that run no task.

    ``imports``: the packages are imported too, as those of the driver may not run elsewhere.
    """
    find = partial(find_lacks, sorted(packages), imports)
    return run_on_all_executors(
        context,
        lambda tasks: context.parallelize(range(tasks), tasks).mapPartitions(find).collect(),
        lambda worker: (worker.host, worker.folder),
    )


def find_lacks(
    packages: Sequence[str],
    imports: bool,  # noqa: FBT001 (bound before it is sent)
    _partition: Iterable[int],
) -> Iterator[WorkerPackages]:
    """Yield what this worker lacks, has too old or cannot import."""
    lacks = [text for name in packages if (text := _describe_lack(name, imports=imports))]
    yield WorkerPackages(socket.gethostname(), str(Path.cwd()), tuple(lacks))


def _describe_lack(package: str, *, imports: bool) -> str | None:
    """Return a package with what is wrong with it on this host; None for nothing."""
    if importlib.util.find_spec(package) is None:
        return package
    if imports and (problem := _find_import_problem(package)):
        return f"{package} ({problem})"
    minimum = MINIMUM_VERSIONS.get(package)
    if minimum is None:
        return None
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # installed without its description
        return None
    if _parse_version(version) >= _parse_version(minimum):
        return None
    return f"{package} {minimum} (they have {version})"


def _find_import_problem(package: str) -> str | None:
    """Return in one line why a package cannot be imported; None if it can."""
    try:
        importlib.import_module(package)
    except Exception as error:  # noqa: BLE001 (code of others; whatever it raises is the reason)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return None


def _parse_version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version.

    >>> _parse_version("17.0.1") < _parse_version("2024.10")
    True
    """
    first, second, *_ = (*map(int, re.findall(r"\d+", text)), 0, 0)
    return first, second


def describe_lacks(found: Iterable[WorkerPackages]) -> str:
    """Return what hosts lack, with the hosts that lack the same things together.

    >>> one, two = ("numpy",), ("numpy", "pyarrow")
    >>> describe_lacks([WorkerPackages(host, "/w", lacks)
    ...                 for host, lacks in [("b", one), ("a", one), ("c", two)]])
    'numpy on a, b; numpy, pyarrow on c'
    """
    hosts = defaultdict(set)
    for worker in found:
        hosts[", ".join(worker.lacks)].add(worker.host)
    groups = sorted((sorted(names), lacks) for lacks, names in hosts.items())
    return "; ".join(f"{lacks} on {', '.join(names)}" for names, lacks in groups)
