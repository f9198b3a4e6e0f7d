"""A pytest plugin that speeds up all tests; loaded by the conftest.py at the root."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

#: a disk in memory, if the machine has one
MEMORY = Path("/dev/shm")
#: bytes that must be free there; the tests need far less
ROOM = 2 << 30

#: new objects between two collections of the youngest generation
YOUNG: Final = 100_000

# rewriting the assertions takes longer than most tests: cache the bytecode even if the environment
# disables that
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Put the temporary folders of tests in memory, unless a place is configured."""
    told = config.option.basetemp or os.environ.get("TMPDIR")
    if not told and _holds_programs(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # the old value is cached


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: ten thousand objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let workers report a test that passes once and not three times: the sending takes longer.

    Who asks how long tests took gets all three.
    """
    options = item.config.option
    is_worker = hasattr(item.config, "workerinput")
    if not is_worker or options.durations is not None or options.xmlpath is not None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(scope="session")
def without_syncing() -> Iterator[None]:
    """Disable fsync for tests that write thousands of small files."""
    real = os.fsync
    os.fsync = lambda _handle: None
    yield
    os.fsync = real


def _holds_programs(disk: Path) -> bool:
    """Return whether a disk has enough room and allows executing programs."""
    if not (disk.is_dir() and os.access(disk, os.W_OK)):
        return False
    about = os.statvfs(disk)
    return about.f_bavail * about.f_frsize >= ROOM and not about.f_flag & os.ST_NOEXEC


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Collect doctests only from files with examples, because pytest examines every name."""
    found = yield
    if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
        return [one for one in found if type(one).__name__ != "DoctestModule"]
    return found
