"""Names of files by folder, held in one column."""

from __future__ import annotations

import pytest

from reconciler.hudi.files.folder_names import FolderNames

FOLDERS = {"p=1": ("a.parquet", "ü.parquet"), "p=2": (), "": ("b.parquet",)}


def test_names_are_those_that_were_given():
    names = FolderNames.build(FOLDERS)

    assert FOLDERS == names
    assert names == FOLDERS
    assert list(FOLDERS.items()) == list(names.items())
    assert () == names.get("p=3", ())
    with pytest.raises(KeyError):
        names["p=3"]


def test_without_folders_there_is_nothing():
    assert not FolderNames.build({})


def test_names_are_one_column():
    names = FolderNames.build({f"p{number}": ("a" * 50,) * 100 for number in range(100)})

    assert 10_000 == len(names.names)
    assert 50 * 10_000 == names.names.buffers()[2].size
