"""Where the jars of real Hudi are: one Spark bundle per version, brought by Ivy.

Ivy comes with PySpark, so nothing else is needed than a Java and, the first time, the network.
``HUDI_BUNDLES=<folder>`` names a folder with the jars for machines without one.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pyspark

SPARK = "3.5"
SCALA = "2.12"
#: the release that wrote each table version, oldest first
VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
TABLE_VERSION = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
_CACHE = Path(__file__).parents[2] / ".oracle"


class BundleUnavailableError(Exception):
    """The bundle of a version could not be found or resolved; says why."""


def java() -> str:
    """The java to start: of JAVA_HOME, else the one on PATH; BundleUnavailableError without any."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise BundleUnavailableError("no java found: set JAVA_HOME, or install the extra `jre`")
    return found


@functools.cache
def bundle(version: str) -> Path:
    """The Hudi bundle of one version, resolved through Ivy (not transitively) into Ivy's cache."""
    module = f"hudi-spark{SPARK}-bundle_{SCALA}"
    if folder := os.environ.get("HUDI_BUNDLES"):
        jar = Path(folder) / f"{module}-{version}.jar"
        if not jar.is_file():
            raise BundleUnavailableError(f"HUDI_BUNDLES is set, but {jar} is not there")
        return jar
    pointer = _CACHE / f"{version}.classpath"
    if not (pointer.is_file() and Path(pointer.read_text().strip()).is_file()):
        _resolve(module, version, pointer)
    return Path(pointer.read_text().strip())


def _resolve(module: str, version: str, pointer: Path) -> None:
    pointer.parent.mkdir(exist_ok=True)
    ivy = next(Path(pyspark.__file__).parent.glob("jars/ivy-2*.jar"))
    command = [java(), "-jar", str(ivy), "-dependency", "org.apache.hudi", module, version]
    command += ["-notransitive", "-confs", "default", "-cachepath", str(pointer)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, cwd=pointer.parent
    )
    if done.returncode or not pointer.is_file() or not pointer.read_text().strip():
        pointer.unlink(missing_ok=True)
        tail = [line for line in done.stdout.splitlines() if len(line) < 400][-12:]
        raise BundleUnavailableError(f"Ivy could not resolve {module} {version}: {tail}")
