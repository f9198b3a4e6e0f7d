from __future__ import annotations

import os
import time
import zipfile

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark import package_archive
from reconciler.spark.driver_packages import PackageFile
from reconciler.spark.package_archive import find_packed, name_archive, pack_files


def list_made(folder, **texts):
    """Write files ``NAME.py`` into a folder, and return them."""
    files = []
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        status = path.stat()
        files.append(
            PackageFile(
                name=f"p/{name}.py",
                path=path,
                bytes=status.st_size,
                modified_ns=status.st_mtime_ns,
            )
        )
    return files


def test_other_files_have_another_name_and_equal_files_the_same(tmp_path):
    files = list_made(tmp_path, a="1", b="2")

    assert name_archive(files) == name_archive(list(files))
    assert name_archive(files) != name_archive(files[:1])
    os.utime(files[0].path, ns=(1, 1))
    assert name_archive(files) != name_archive([*list_made(tmp_path, a="3"), files[1]])


def test_an_archive_has_the_files_with_rights_to_read_them(tmp_path):
    files = list_made(tmp_path, a="1", b="2")
    made = pack_files(files, [tmp_path / "cache"], name_archive(files))

    with zipfile.ZipFile(made) as archive:
        assert {"p/a.py": b"1", "p/b.py": b"2"} == {
            entry.filename: archive.read(entry) for entry in archive.infolist()
        }
        assert {0o644} == {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert made == find_packed(tmp_path / "cache", name_archive(files))


def test_an_archive_that_a_kill_left_half_written_is_not_taken(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 and no more")

    assert find_packed(tmp_path, "a.zip") is None
    assert find_packed(tmp_path / "nowhere", "a.zip") is None


def test_a_cache_that_cannot_be_written_is_passed_over(tmp_path):
    files = list_made(tmp_path, a="1")
    (tmp_path / "file").write_text("no folder")
    made = pack_files(files, [tmp_path / "file" / "cache", tmp_path / "session"], "a.zip")

    assert tmp_path / "session" / "a.zip" == made


def test_nowhere_to_pack_is_one_error_and_leaves_nothing(tmp_path):
    files = list_made(tmp_path, a="1")
    files[0].path.unlink()
    with pytest.raises(ReconcilerError, match=r"cannot pack the packages .* No such file"):
        pack_files(files, [tmp_path / "one"], "a.zip")

    assert [] == list((tmp_path / "one").iterdir())


def test_archives_that_nobody_used_for_a_month_are_removed(tmp_path):
    files = list_made(tmp_path, a="1")
    old, recent, other = (
        tmp_path / name
        for name in ("reconciler-packages-1.zip", "reconciler-packages-2.zip", "other.zip")
    )
    for file in (old, recent, other):
        file.write_text("")
    os.utime(old, (1, 1))
    os.utime(other, (1, 1))
    pack_files(files, [tmp_path], "reconciler-packages-3.zip")

    assert not old.exists()
    assert recent.exists()
    assert other.exists()


def test_half_written_archives_of_killed_runs_are_removed_after_a_day(tmp_path):
    files = list_made(tmp_path, a="1")
    old, recent = (tmp_path / f"reconciler-packages-{name}.part" for name in ("old", "recent"))
    for file in (old, recent):
        file.write_text("")
    before = time.time() - 90_000
    os.utime(old, (before, before))
    pack_files(files, [tmp_path], "reconciler-packages-3.zip")

    assert not old.exists()
    assert recent.exists()


def test_an_archive_that_is_being_written_is_named_as_half_written(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        package_archive, "_write_archive", lambda *_: seen.extend(tmp_path.iterdir())
    )
    pack_files([], [tmp_path], "reconciler-packages-3.zip")

    assert [".part"] == [file.suffix for file in seen]
    assert seen[0].name.startswith("reconciler-packages-")
