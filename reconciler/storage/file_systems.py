"""Tell on which file systems the local folders are that a program reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from reconciler.storage.locations import find_local_path

#: file systems on disks or in memory of this machine, where a call does not wait for another one;
#: not btrfs, whose folders are on other devices than its mounts say
_OF_THIS_MACHINE: Final = frozenset(
    {"ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)


def find_file_systems(device: int, mounts: str) -> frozenset[str]:
    """Return the kinds of file systems that are mounted from a device; none if it is unknown.

    ``device``: as in ``st_dev``. ``mounts``: the text of ``/proc/self/mountinfo``.
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    return frozenset(
        line.partition(" - ")[2].split(" ", 1)[0]
        for line in mounts.splitlines()
        if line.split(" ", 3)[2:3] == [number]
    )


def are_on_this_machine(locations: Iterable[str], mounts: str) -> bool:
    """Return whether all locations are on disks of this machine.

    A folder that does not exist counts as the one above it.
    """
    devices = set()
    for location in set(locations):
        path = find_local_path(location)
        if not path or (device := _find_device(Path(path).absolute())) is None:
            return False
        devices.add(device)
    found = [find_file_systems(device, mounts) for device in devices]
    return all(kinds and kinds <= _OF_THIS_MACHINE for kinds in found)


def _find_device(path: Path) -> int | None:
    for folder in (path, *path.parents):
        try:
            return folder.stat().st_dev
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            return None
    return None
