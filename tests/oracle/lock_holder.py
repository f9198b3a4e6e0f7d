"""A lock provider of Hudi in a process, which takes and releases a lock as a writer does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.oracle.bundles import bundle, java
from tests.oracle.storage_lock_holder import HudiLockHolder

_SOURCE = Path(__file__).parent / "LockHolder.java"


@contextmanager
def run_lock_provider(
    version: str, provider: str, options: Mapping[str, str], log: Path, jars_first: str = ""
) -> Iterator[HudiLockHolder]:
    """Run a provider of a version of Hudi; ``log`` takes its messages.

    ``jars_first``: a class path of what the bundle lacks.
    """
    jars = Path(pyspark.__file__).parent / "jars"
    settings = [f"{key}={value}" for key, value in options.items()]
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars_first}:{bundle(version)}:{jars}/*"]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, str(_SOURCE), provider, *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield HudiLockHolder(process)
        finally:
            process.kill()
