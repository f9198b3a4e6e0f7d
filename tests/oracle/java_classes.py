"""Compile Java classes of tests against a version of Hudi and Spark's jars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark

from tests.oracle.bundles import BundleUnavailableError, bundle, java

_SOURCES = Path(__file__).parent / "java"
_COMPILER = "jdk.compiler/com.sun.tools.javac.Main"


def compile_classes(version: str, folder: Path, *names: str) -> str:
    """Compile classes of ``tests/oracle/java``; return the class path with them and the jars."""
    jars = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    path = os.pathsep.join(map(str, (bundle(version), *sorted(jars))))
    sources = [str(_SOURCES / f"{name}.java") for name in names]
    done = subprocess.run(
        [java(), "-m", _COMPILER, "-nowarn", "-d", str(folder), "-cp", path, *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BundleUnavailableError(f"{', '.join(names)} cannot be compiled: {done.stderr}")
    return f"{folder}{os.pathsep}{path}"
