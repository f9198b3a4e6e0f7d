"""What makes every test cheaper and asks none of them; loaded by the conftest at the root."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

#: a disk in memory, where the machine has one
MEMORY = Path("/dev/shm")
#: what must be free there; the tests together leave far less
ROOM = 2 << 30

#: new objects between two looks of the garbage collector at the young ones
YOUNG: Final = 100_000

# rewriting the assertions of all tests takes longer than most of them: keep what came of it, also
# where the environment says to write no bytecode
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Folders of tests are made and removed by the ten thousand: in memory, unless told where."""
    told = config.option.basetemp or os.environ.get("TMPDIR")
    if not told and _holds_programs(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # it was looked up once


def pytest_collection_finish() -> None:
    """Ten thousand tests wait in memory, and a collector that walks over them finds nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)


@pytest.fixture(scope="session")
def without_syncing() -> Iterator[None]:
    """For those who write thousands of small files and do not ask what a disk keeps of them."""
    real = os.fsync
    os.fsync = lambda _handle: None
    yield
    os.fsync = real


def _holds_programs(disk: Path) -> bool:
    """Whether there is room, and tests can start the programs that they write."""
    if not (disk.is_dir() and os.access(disk, os.W_OK)):
        return False
    about = os.statvfs(disk)
    return about.f_bavail * about.f_frsize >= ROOM and not about.f_flag & os.ST_NOEXEC


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Examples are looked for only where the text has one: pytest looks at every name there is."""
    found = yield
    if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
        return [one for one in found if type(one).__name__ != "DoctestModule"]
    return found
