from __future__ import annotations

import os

import pytest

from reconciler.storage.file_systems import are_on_this_machine, find_file_systems


def mount(folder, kind):
    """Return the line of mountinfo of a folder's device."""
    device = folder.stat().st_dev
    return f"9 1 {os.major(device)}:{os.minor(device)} / /m rw shared:1 - {kind} /dev/x rw\n"


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["ext4"], True),
        (["overlay"], True),
        (["xfs", "xfs"], True),
        (["nfs4"], False),
        (["fuse.s3fs"], False),
        (["ext4", "9p"], False),
        ([], False),
    ],
)
def test_folders_are_on_this_machine_if_their_file_systems_are(tmp_path, kinds, expected):
    mounts = "8 1 0:0 / /n rw - ext4 y rw\n" + "".join(mount(tmp_path, kind) for kind in kinds)

    assert find_file_systems(tmp_path.stat().st_dev, mounts) == set(kinds)
    assert are_on_this_machine([str(tmp_path), f"file://{tmp_path}"], mounts) is expected


@pytest.mark.parametrize("other", ["s3://lake/a", "", "a\0b"])
def test_one_place_elsewhere_is_enough(tmp_path, other):
    mounts = mount(tmp_path, "ext4")

    assert not are_on_this_machine([str(tmp_path), other], mounts)


def test_a_missing_folder_counts_as_the_one_above_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert are_on_this_machine(["a/b", str(tmp_path / "c")], mount(tmp_path, "ext4"))
    assert not are_on_this_machine(["a/b"], mount(tmp_path, "nfs"))


def test_no_locations_are_on_this_machine():
    assert are_on_this_machine([], "")
