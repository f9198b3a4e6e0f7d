"""A lock that a spec declares, as runs take it and as commands show it.

``python -m tests.oracle.lock_story SPEC`` takes the lock and holds it until it is killed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import reconciler
from reconciler import runtime
from reconciler.errors import BusyError
from reconciler.spec.model import Lock, TableSpec
from reconciler.transaction.heartbeat import HeartbeatThread
from reconciler.transaction.locks.declared_lock import find_declared_lock, open_lock_place
from reconciler.transaction.locks.table_lock import LockPlace
from reconciler.transaction.session import RunContext, open_lock
from tests.command import run
from tests.crash.drill import CASES, make_drill

_TABLE: Final = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency: {{lock: {lock}}}
"""


def open_spec_lock(spec: TableSpec, token: str, wait_s: float = 0) -> Any:
    """Return the lock of a spec as a run with this token takes it."""
    context = RunContext(
        open_storage=runtime.open_storage,
        clock=runtime.SystemClock(),
        process=runtime.current_process(),
        lock_wait_s=wait_s,
    )
    storage = runtime.open_storage(spec.path, spec.storage_options)
    return open_lock(spec, storage, context.process.make_owner(token), context)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockStory:
    """A table of real Hudi with a declared lock. ``adjust``: of each lock that a run takes."""

    spec_file: Path
    spec: TableSpec
    adjust: Callable[[Any], None] = lambda _lock: None

    @classmethod
    def begin(cls, folder: Path, lock: str, **more: Any) -> LockStory:
        """Unpack a table with work for a clean; ``lock``: as in a spec."""
        drill = make_drill(_TABLE, folder / "lake", retention="commits: 1")
        file = folder / "orders.yaml"
        file.write_text(_SPEC.format(path=drill.table, lock=lock))
        (spec,) = reconciler.load_specs(file)
        return cls(spec_file=file, spec=spec, **more)

    @property
    def declared(self) -> Lock:
        lock = find_declared_lock(self.spec)
        assert lock is not None, "it declares one"
        return lock

    def lock_of(self, token: str, wait_s: float = 0) -> Any:
        """Return the lock as a run with this token takes it."""
        lock = open_spec_lock(self.spec, token, wait_s)
        self.adjust(lock)
        return lock

    def place(self) -> LockPlace:
        """Return the lock as others see it."""
        return open_lock_place(
            self.declared,
            runtime.open_storage(self.spec.path),
            runtime.open_storage,
            runtime.SystemClock(),
        )

    @contextmanager
    def hold_elsewhere(self) -> Iterator[subprocess.Popen[str]]:
        """Hold the lock in another process of this host, which the block may kill."""
        holder = subprocess.Popen(
            [sys.executable, "-m", "tests.oracle.lock_story", str(self.spec_file)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()
            holder.wait()
            holder.stdout.close()

    def check_killed_run(self, *, within_s: float, wait_s: float) -> None:
        """A run of this host holds the lock while it lives, and loses it when it is killed."""
        with self.hold_elsewhere() as holder:
            with pytest.raises(BusyError, match=f"process {holder.pid}"):
                self.lock_of("ours").acquire().__enter__()
            assert f"process {holder.pid}" in self.place().read_holder().describe(0)  # type: ignore[union-attr]
        began = time.monotonic()
        with self.lock_of("ours", wait_s).acquire():
            assert time.monotonic() - began < within_s

    def check_commands(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str
    ) -> None:
        """``apply`` waits for the lock and gives up; ``status`` and ``unlock`` know who has it.

        ``named``: the lock's location in ``status``.
        """
        monkeypatch.chdir(self.spec_file.parent)
        assert run("plan", self.spec_file, "-o", "plan.json") == 0
        other, heartbeats = self.lock_of("other"), HeartbeatThread(2)
        with other.acquire(), heartbeats.repeat(other.renew):
            assert run("apply", "plan.json") == 6  # after a minute
            assert "is locked by" in _read_flat(capsys)
            assert run("status", self.spec_file) == 0
            assert f"{named} is held by" in _read_flat(capsys)
            assert run("unlock", self.spec_file, "--yes") == 0
            assert "the lock was removed" in _read_flat(capsys)
        assert run("apply", "plan.json") == 0
        assert self.place().read_holder() is None

    def check_unreachable(
        self, capsys: pytest.CaptureFixture[str], problem: str, *, within_s: float = 40
    ) -> None:
        """A lock whose servers do not answer is no free one for ``status``, and one error else."""
        began = time.monotonic()
        assert run("status", self.spec_file) == 0
        assert time.monotonic() - began < within_s
        told = _read_flat(capsys)
        assert "is held by an unknown holder: " in told
        assert problem in told
        assert run("unlock", self.spec_file, "--yes") == 1
        assert problem in _read_flat(capsys)


def _read_flat(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, without line breaks."""
    return " ".join("".join(capsys.readouterr()).split())


def main() -> None:
    (spec,) = reconciler.load_specs(sys.argv[1])
    with open_spec_lock(spec, "killed").acquire():
        print("held", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
