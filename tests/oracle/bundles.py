"""Find the jars of real Hudi: one Spark bundle per version, downloaded by Ivy.

Ivy comes with PySpark, so only a Java is needed and, the first time, the network.
``HUDI_BUNDLES=<folder>`` names a folder with the jars for machines without a network.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import ssl
import struct
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
    """The bundle of a version could not be found or downloaded; says why."""


def java() -> str:
    """Return the java to start: of JAVA_HOME, else on PATH; BundleUnavailableError for none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise BundleUnavailableError("no java found: set JAVA_HOME, or install the extra `jre`")
    return found


@functools.cache
def bundle(version: str) -> Path:
    """Return the Hudi bundle of a version, resolved by Ivy without its dependencies."""
    module = f"hudi-spark{SPARK}-bundle_{SCALA}"
    if folder := os.environ.get("HUDI_BUNDLES"):
        jar = Path(folder) / f"{module}-{version}.jar"
        if not jar.is_file():
            raise BundleUnavailableError(f"HUDI_BUNDLES is set, but {jar} is not there")
        return jar
    pointer = _CACHE / f"{version}.classpath"
    pointer.parent.mkdir(exist_ok=True)
    with (_CACHE / "resolving").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # tests run in two processes, and Ivy's cache is one
        if not (pointer.is_file() and Path(pointer.read_text().strip()).is_file()):
            _resolve(module, version, pointer)
    return Path(pointer.read_text().strip())


@functools.cache
def class_path(group: str, module: str, version: str, *, alone: bool = False) -> str:
    """Return the jars of a module with its dependencies, resolved by Ivy; ``alone``: without."""
    pointer = _CACHE / f"{module}-{version}.classpath"
    pointer.parent.mkdir(exist_ok=True)
    with (_CACHE / "resolving").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not pointer.is_file():
            _resolve(module, version, pointer, group, transitive=not alone)
    return pointer.read_text().strip()


def _resolve(
    module: str,
    version: str,
    pointer: Path,
    group: str = "org.apache.hudi",
    *,
    transitive: bool = False,
) -> None:
    what = [group, module, version, *([] if transitive else ["-notransitive"])]
    problem = _ivy([], what, pointer)
    if problem and "SSLHandshakeException" in problem:
        trust = pointer.parent / "trust.jks"
        trust.write_bytes(_trust_store(ssl.create_default_context().get_ca_certs(binary_form=True)))
        problem = _ivy([f"-Djavax.net.ssl.trustStore={trust}"], what, pointer)
    if problem:
        pointer.unlink(missing_ok=True)
        raise BundleUnavailableError(f"Ivy could not resolve {module} {version}: {problem}")


def _ivy(options: list[str], what: list[str], pointer: Path) -> str | None:
    """Run Ivy; returns None when the pointer names the jar, else its last output."""
    ivy = next(Path(pyspark.__file__).parent.glob("jars/ivy-2*.jar"))
    command = [java(), *options, "-jar", str(ivy), "-dependency", *what]
    command += ["-confs", "default", "-cachepath", str(pointer)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, cwd=pointer.parent
    )
    if done.returncode == 0 and pointer.is_file() and pointer.read_text().strip():
        return None
    return " ".join(line for line in done.stdout.splitlines() if 0 < len(line) < 600)[-1500:]


def _trust_store(certificates: list[bytes]) -> bytes:
    """A Java key store of the authorities that Python trusts: a packaged Java knows only its own.

    The JKS format: magic, version, entries, then SHA-1 over password, a fixed text and the bytes.
    """
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, der in enumerate(certificates):
        alias = f"ca{number}".encode()
        body += struct.pack(">IH", 2, len(alias)) + alias + struct.pack(">QH", 0, 5) + b"X.509"
        body += struct.pack(">I", len(der)) + der
    password = "changeit".encode("utf-16-be")
    return body + hashlib.sha1(password + b"Mighty Aphrodite" + body).digest()
