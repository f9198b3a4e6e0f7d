"""Folders for temporary files: a disk that refuses a write is named."""

from __future__ import annotations

import errno
import os
import tempfile

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark.temporary_folders import make_temporary_folder


def fail(number):
    raise OSError(number, os.strerror(number))


def test_a_folder_is_removed_after_the_block_and_after_an_error(tmp_path):
    with make_temporary_folder(tmp_path) as folder:
        (folder / "rows").write_text("x")
        assert tmp_path == folder.parent
    with pytest.raises(KeyboardInterrupt), make_temporary_folder(tmp_path) as folder:
        raise KeyboardInterrupt

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_is_named_with_what_to_do(number, tmp_path):
    with pytest.raises(ReconcilerError) as found, make_temporary_folder(tmp_path):
        fail(number)

    assert (
        f"{tmp_path}: cannot write temporary files: {os.strerror(number)}; free space there, or "
        "put temporary files elsewhere (spark.local.dir, else TMPDIR)"
    ) == str(found.value)
    assert [] == list(tmp_path.iterdir())


def test_other_errors_of_the_block_stay_what_they_are(tmp_path):
    with pytest.raises(PermissionError), make_temporary_folder(tmp_path):
        fail(errno.EACCES)


def test_a_machine_without_a_folder_for_temporary_files_is_told_so(monkeypatch):
    def find():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", find)
    with (
        pytest.raises(ReconcilerError, match=r"No usable temporary directory.*set TMPDIR"),
        make_temporary_folder(),
    ):
        pass
