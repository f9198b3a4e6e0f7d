"""Hadoop's clients for stores, which a Spark that is started here may lack: find or fetch them.

PySpark brings none. Ivy, which comes with Spark, fetches the one that fits Spark's own Hadoop into
the cache in which ``spark.jars.packages`` keep theirs. Clusters bring their own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from reconciler import runtime
from reconciler.cli.spark_properties import find_default_setting
from reconciler.cli.terminal import log_message
from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass

_FETCH_S: Final = 1800
_HADOOP: Final = re.compile(r"hadoop-client-api-(\d+\.\d+\.\d+)[^/]*\.jar")
_JARS: Final = "spark.jars"
#: settings in which a client may be given
_CLASS_PATHS: Final = ("spark.driver.extraClassPath", "spark.jars")
_PACKAGES: Final = "spark.jars.packages"
#: how long Ivy waits for a connection and for the next bytes, in milliseconds
_TIMEOUTS: Final = '<timeout-constraint name="short" connectionTimeout="5000" readTimeout="20000"/>'
_LIKE_MAVEN: Final = 'm2compatible="true" timeoutConstraint="short"'


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreNeeds:
    """The stores ("s3", "gs", "azure") that Spark itself reads.

    ``is_required``: nothing else can read them; otherwise a missing client is only a warning.
    """

    stores: frozenset[str] = frozenset()
    is_required: bool = True


NO_STORES: Final = StoreNeeds()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connector:
    """A client of Hadoop for a store; ``version``: None for that of Spark's Hadoop.

    ``classifier``: of the jar that holds its dependencies under other names.
    """

    scheme: str
    group: str
    artifact: str
    class_file: str
    version: str | None = None
    classifier: str = ""


_CONNECTORS: Final[Mapping[str, _Connector]] = {
    "s3": _Connector(
        scheme="s3",
        group="org.apache.hadoop",
        artifact="hadoop-aws",
        class_file="org/apache/hadoop/fs/s3a/S3AFileSystem.class",
    ),
    "azure": _Connector(
        scheme="abfss",
        group="org.apache.hadoop",
        artifact="hadoop-azure",
        class_file="org/apache/hadoop/fs/azurebfs/SecureAzureBlobFileSystem.class",
    ),
    "gs": _Connector(
        scheme="gs",
        group="com.google.cloud.bigdataoss",
        artifact="gcs-connector",
        class_file="com/google/cloud/hadoop/fs/gcs/GoogleHadoopFileSystem.class",
        version="hadoop3-2.2.26",
        classifier="shaded",
    ),
}


def add_connectors(
    settings: Mapping[str, str], needs: StoreNeeds, spark_home: Path, defaults: str
) -> dict[str, str]:
    """Return the settings of a Java to start, with the clients of stores that it lacks.

    Only a local Spark gets any. ``defaults``: the text of Spark's file of settings. Raises
    ReconcilerError for a client that is needed and cannot be fetched.
    """
    made = dict(settings)
    hadoop = find_hadoop_version(spark_home)
    master = settings.get("spark.master") or find_default_setting(defaults, "spark.master")
    if hadoop is None or not (master or "local").startswith("local"):
        return made
    for store in sorted(needs.stores):
        connector = _CONNECTORS[store]
        if _has_connector(connector, made, spark_home, defaults):
            continue
        try:
            files = _fetch(connector, connector.version or hadoop, made, spark_home)
        except ReconcilerError as error:
            if needs.is_required:
                raise
            log_message(f"warning: {error}; Python's client reads instead", level="warning")
            continue
        given = made.get(_JARS) or find_default_setting(defaults, _JARS)
        made[_JARS] = ",".join([*([given] if given else []), *files])
    return made


def find_hadoop_version(spark_home: Path) -> str | None:
    """Return the version of the Hadoop that a Spark brings; None for a Spark without one."""
    names = (_HADOOP.fullmatch(file.name) for file in (spark_home / "jars").glob("hadoop-*.jar"))
    return next((name[1] for name in names if name), None)


def _has_connector(
    connector: _Connector, settings: Mapping[str, str], spark_home: Path, defaults: str
) -> bool:
    """Return whether a Java with these settings has a client already, or its user gives one."""
    arguments = runtime.environment().get("PYSPARK_SUBMIT_ARGS", "")
    packages = settings.get(_PACKAGES) or find_default_setting(defaults, _PACKAGES) or ""
    if connector.artifact in packages or connector.artifact in arguments:
        return True
    if any((spark_home / "jars").glob(f"{connector.artifact}*.jar")):
        return True
    if "--jars" in shlex.split(arguments):  # it would replace our setting
        return True
    variables = (runtime.environment().get(name) for name in ("SPARK_DIST_CLASSPATH",))
    given = [settings.get(name) or find_default_setting(defaults, name) for name in _CLASS_PATHS]
    files = (file for text in (*given, *variables) if text for file in _list_jars(text))
    return any(_has_class(file, connector.class_file) for file in files)


def _list_jars(class_path: str) -> Iterator[Path]:
    """Yield the local jars of a class path, or of a list with commas."""
    for entry in re.split(f"[,{os.pathsep}]", class_path.replace("file://", "")):
        path = Path(entry.strip())
        if path.name == "*":
            yield from path.parent.glob("*.jar")
        elif entry.strip():
            yield path


def _has_class(file: Path, name: str) -> bool:
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(file) as jar:
        return name in jar.namelist()
    return False


def _fetch(
    connector: _Connector, version: str, settings: Mapping[str, str], spark_home: Path
) -> list[str]:
    """Return the jars of a client, which Ivy downloads unless its cache has them."""
    cache = Path(settings.get("spark.jars.ivy", str(Path.home() / ".ivy2"))).expanduser() / "cache"
    pointer = cache / f"reconciler-{connector.artifact}-{version}.classpath"
    known = _read_pointer(pointer)
    if known:
        return known
    name = f"{connector.group}:{connector.artifact}:{version}"
    log_message(f"fetching {name}, with which Spark reads {connector.scheme}://")
    problem = None
    with tempfile.TemporaryDirectory(prefix="reconciler-ivy-") as folder:
        found = Path(folder) / "classpath"
        command = _make_command(connector, version, settings, spark_home, Path(folder))
        try:
            done = subprocess.run(  # noqa: S603 (Spark's own Java and Ivy)
                [*command, "-cache", str(cache), "-cachepath", str(found)],
                capture_output=True,
                text=True,
                check=False,
                timeout=_FETCH_S,
                cwd=folder,
            )
            if done.returncode or not found.is_file() or not found.read_text().strip():
                problem = _explain(done.stdout + done.stderr)
            else:
                shutil.copyfile(found, f"{pointer}.{os.getpid()}")
                Path(f"{pointer}.{os.getpid()}").replace(pointer)
        except (OSError, subprocess.SubprocessError) as error:
            problem = str(error)
    if problem is None:
        return _read_pointer(pointer)
    raise ReconcilerError(
        f"Spark reads {connector.scheme}:// with {name}, which could not be fetched: {problem}; "
        "run once with a network, or give its jars in spark.jars"
    )


def _read_pointer(pointer: Path) -> list[str]:
    """Return the jars that an earlier fetch has named; none if one of them is gone."""
    try:
        files = [each for each in pointer.read_text().strip().split(os.pathsep) if each]
    except OSError:
        return []
    return files if all(Path(each).is_file() for each in files) else []


def _make_command(
    connector: _Connector,
    version: str,
    settings: Mapping[str, str],
    spark_home: Path,
    folder: Path,
) -> list[str]:
    home = runtime.environment().get("JAVA_HOME")
    ivy = next((spark_home / "jars").glob("ivy-2*.jar"), None)
    command = [f"{home}/bin/java" if home else "java", "-jar", str(ivy), "-confs", "default"]
    if given := settings.get("spark.jars.ivySettings"):
        command += ["-settings", given]
    else:
        repositories = settings.get("spark.jars.repositories", "").split(",")
        file = folder / "settings.xml"
        file.write_text(_make_ivy_settings(repositories), encoding="utf-8")
        command += ["-settings", str(file)]
    if not connector.classifier:
        return [*command, "-dependency", connector.group, connector.artifact, version]
    module = folder / "ivy.xml"
    module.write_text(_make_module(connector, version), encoding="utf-8")
    return [*command, "-ivy", str(module)]


def _make_ivy_settings(repositories: Iterable[str]) -> str:
    """Return settings of Ivy that ask given repositories before Maven's central one.

    Where a network drops what is sent, Ivy would wait for minutes by itself.
    """
    given = "".join(
        f'<ibiblio name="given-{number}" root={quoteattr(url.strip())} {_LIKE_MAVEN}/>'
        for number, url in enumerate(repositories)
        if url.strip()
    )
    return (
        f'<ivysettings><settings defaultResolver="all"/><timeout-constraints>{_TIMEOUTS}'
        '</timeout-constraints><resolvers><chain name="all" returnFirst="true">'
        f'{given}<ibiblio name="central" {_LIKE_MAVEN}/></chain></resolvers></ivysettings>'
    )


def _make_module(connector: _Connector, version: str) -> str:
    """Return a module for Ivy that depends on one jar with a classifier, and on nothing else."""
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="reconciler" module="connector"/><dependencies>'
        f'<dependency org="{connector.group}" name="{connector.artifact}" rev="{version}" '
        f'transitive="false"><artifact name="{connector.artifact}" type="jar" ext="jar" '
        f'm:classifier="{connector.classifier}"/></dependency></dependencies></ivy-module>'
    )


def _explain(output: str) -> str:
    """Return in a few words why Ivy failed."""
    if "UnknownHostException" in output or "Server access error" in output:
        return "no repository answers"
    if "SSLHandshakeException" in output:
        return "Java does not trust the repository's certificate"
    if "UNRESOLVED DEPENDENCIES" in output or "FAILED DOWNLOADS" in output:
        return "no repository has it, or none answers"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "Ivy failed"
