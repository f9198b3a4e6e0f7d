from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.cli import spark_properties


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_only_this_user_reads_the_file_of_settings_and_it_goes(
    has_memory_files, tmp_path, monkeypatch
):
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with spark_properties.open_private_file("spark.a=b\n", tmp_path) as path:
        mode, text = Path(path).stat().st_mode & 0o777, Path(path).read_text()

    assert (0o600, "spark.a=b\n") == (mode, text)
    assert not Path(path).exists()
    assert [] == list(tmp_path.iterdir())


def test_characters_outside_the_basic_plane_are_escaped_as_java_does():

    assert "spark.a=\\ud83d\\ude00\n" == spark_properties.format_properties(
        {"spark.a": "\U0001f600"}
    )


def test_a_redaction_that_is_given_still_holds():

    assert "mine" == spark_properties.extend_redaction("mine", [])
    assert spark_properties.extend_redaction("mine", ["spark.b"]).startswith("mine|")


def test_options_of_java_that_a_variable_holds_are_exposed_by_spark_itself():
    names = ["spark.x.token", "spark.driver.extraJavaOptions"]

    assert ["spark.driver.extraJavaOptions"] == spark_properties.find_exposed_settings(names)
