"""Find out the machine, the versions and the load that figures belong to."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil

import reconciler
from tests.bench.versions import DELTA_VERSION, HUDI_VERSION, ICEBERG_VERSION
from tests.oracle.bundles import BundleUnavailableError, java

_ROOT: Final = Path(__file__).parents[2]
_PYTHON: Final = ("pyspark", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What figures depend on: the machine, and the versions by name."""

    processor: str
    cores: int
    memory_gib: int
    disk: str
    system: str
    versions: dict[str, str]

    @property
    def has_committed_code(self) -> bool:
        """Return whether the versions say exactly which code is measured."""
        return re.fullmatch(r"commit [0-9a-f]+", self.versions["reconciler"]) is not None

    def has_same_code(self) -> bool:
        """Return whether the versions still say which code there is."""
        return self.versions["reconciler"] == f"commit {read_commit()}"


def read_machine(folder: Path) -> Machine:
    """Return this machine; ``folder``: where the benches' tables are."""
    return Machine(
        processor=_read_processor(),
        cores=os.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30),
        disk=_read_disk(folder),
        system=f"{platform.system()} {platform.release()}",
        versions={
            "reconciler": f"commit {read_commit()}",
            "Python": platform.python_version(),
            **{name: version(name) for name in _PYTHON},
            "Java": _read_java(),
            "Hudi": HUDI_VERSION,
            "Delta": DELTA_VERSION,
            "Iceberg": ICEBERG_VERSION,
        },
    )


def _read_processor() -> str:
    with suppress(OSError):
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def _read_disk(folder: Path) -> str:
    """Return file system and device of a folder, and the kind of its device."""
    near = next(path for path in (folder, *folder.parents) if path.exists()).resolve()
    mounts = [
        one for one in psutil.disk_partitions(all=True) if near.is_relative_to(one.mountpoint)
    ]
    if not mounts:
        return "unknown"
    mount = max(mounts, key=lambda one: len(one.mountpoint))
    device = Path(mount.device).name
    if device.startswith(("vd", "xvd")):
        return f"{mount.fstype} on a virtual disk"
    with suppress(OSError):
        rotates = Path(f"/sys/class/block/{device}/queue/rotational").read_text().strip() == "1"
        return f"{mount.fstype} on a {'rotating' if rotates else 'solid-state'} disk ({device})"
    return f"{mount.fstype} on {device}"


def _read_java() -> str:
    try:
        done = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True)
    except BundleUnavailableError:
        return "none"
    found = re.search(r'"([^"]+)"', done.stderr)
    return found[1] if found else done.stderr.splitlines()[0]


def use_this_tree() -> None:
    """Make the programs of the benches import the code beside them, not one that is installed.

    SystemExit if this process has imported another.
    """
    found = Path(reconciler.__file__).parents[1]
    if found != _ROOT:
        raise SystemExit(f"reconciler is imported from {found}: set PYTHONPATH={_ROOT}")
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *filter(None, others)])


def read_commit() -> str:
    """Return the commit, with ``and changes`` if what is measured differs from it."""
    try:
        at = _git("rev-parse", "--short=10", "HEAD")
        changes = _git("status", "--porcelain", "--", "reconciler", "tests/bench/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{at} and changes" if changes else at


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
