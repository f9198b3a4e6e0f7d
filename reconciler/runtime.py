"""The clock, this process and randomness: read here, and handed down as arguments."""

from __future__ import annotations

import getpass
import os
import socket
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.hudi.timeline.owner import Owner
    from reconciler.spec.model import Option
    from reconciler.storage.api import Storage, StorageRef
    from reconciler.transaction.process import Process

DISTRIBUTION: Final = "hudi-reconciler"
VERSION: Final = "0.1.0"  # pyproject.toml reads it here: reading package metadata takes 14 ms
_INITIAL_NAMESPACE: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO of Linux
_BOOT_LENGTH: Final = 13  # of a UUID's text: 48 bits
_START_TIME_FIELD: Final = 19  # of what follows the name in /proc/<pid>/stat


def now() -> datetime:
    """The present, with its zone."""
    return datetime.now(UTC)


def to_epoch_ms(moment: datetime) -> int:
    """Milliseconds since the epoch.

    >>> epoch_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000
    """
    return round(moment.timestamp() * 1000)


def new_token() -> str:
    """A name for one run that no other run has."""
    return uuid.uuid4().hex


def tool_name() -> str:
    """The name and version of this program, as plans and instants carry it."""
    return f"{DISTRIBUTION} {VERSION}"


def open_storage(ref: StorageRef | str, options: Mapping[str, Option] | None = None) -> Storage:
    """The storage at a location; nothing is read yet.

    What options only name is taken from this process's variables, and no message repeats it. Raises
    SpecError where one is not set, StorageError for a location that names no store.
    """
    from reconciler.storage.api import StorageRef  # noqa: PLC0415 (commands import us early)
    from reconciler.storage.open import open_storage as opened  # noqa: PLC0415

    if not isinstance(ref, str):
        return opened(ref)
    held = {name: each for name, each in (options or {}).items() if not isinstance(each, str)}
    values = resolve_options(options or {})
    secrets = tuple(values[name] for name in held)
    return opened(StorageRef(ref, tuple(sorted(values.items())), secrets))


def resolve_options(options: Mapping[str, Option]) -> dict[str, str]:
    """The options with what variables hold; SpecError names every variable that is not set."""
    check_variables(options.values())
    return {
        name: each if isinstance(each, str) else os.environ[each.variable]
        for name, each in options.items()
    }


def check_variables(options: Iterable[Option]) -> None:
    """Raise SpecError with every variable that is not set or empty, each once."""
    missing: dict[str, str] = {}
    for each in options:
        if not isinstance(each, str) and not os.environ.get(each.variable):
            missing.setdefault(each.variable, each.declared_at)
    if missing:
        raise SpecError(
            "\n".join(
                f"{at}: the variable {name} is not set; set it where reconciler runs"
                for name, at in missing.items()
            )
        )


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def current_process() -> Process:
    """Facts about this process, for locks and heartbeats."""
    from reconciler.transaction.process import Process  # noqa: PLC0415 (only apply needs it)

    pid = os.getpid()
    return Process(
        who=user_name(),
        host=_host_identity(),
        pid=pid,
        started=_process_start(pid) or "",
        tool=tool_name(),
        is_running=is_running,
    )


def is_owner_alive(owner: Owner) -> bool | None:
    """Whether the process of an owner runs; None where it is of another host."""
    return current_process().is_alive(owner)


def is_running(pid: int, started: str) -> bool:
    """Whether the very process lives on this host; True when that cannot be found out."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # of another user: it lives, or we may not know
    found = _process_start(pid)
    return not found or not started or found == started


def user_name() -> str:
    """The user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


def _host_identity() -> str:
    """The host's name and what tells it from others of that name; a pid means something only there.

    Machines made of one image and containers may share a name, and containers of different machines
    the number of their pid namespace too. What a boot has left counts as another host's after the
    next one.
    """
    name = socket.gethostname()
    try:
        boot = _boot_id()[:_BOOT_LENGTH]
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return name
    return f"{name}/{boot}" if namespace == _INITIAL_NAMESPACE else f"{name}/{boot}/{namespace}"


def _boot_id() -> str:
    """What tells one run of a machine's kernel from every other; OSError where that is not said."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _process_start(pid: int) -> str | None:
    """When a process started, as text that no later process with its pid has; None if unknown.

    One that is dead and not yet reaped by its parent has not started.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = _boot_id()
    except OSError:
        return None
    fields = status.rpartition(")")[2].split()
    return "ended" if fields[0] == "Z" else f"{boot}/{fields[_START_TIME_FIELD]}"
