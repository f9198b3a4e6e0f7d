"""The clock, the environment and this process: the one module that reads them (ADR 0003).

Callers hand down what they read here as arguments, so that the rest of the package is pure.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reconciler.hudi.timeline.owner import Owner
    from reconciler.spec.model import CatalogTable, Option
    from reconciler.state.catalogs.api import CatalogClient
    from reconciler.state.listing_memory import ListingCache
    from reconciler.storage.api import Storage, StorageRef
    from reconciler.transaction.process import Process

DISTRIBUTION: Final = "hudi-reconciler"
VERSION: Final = "0.1.0"  # pyproject.toml reads it here: reading package metadata takes 14 ms
_INITIAL_NAMESPACE: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO of Linux
_FILES_OF_AWS: Final = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
# of Linux's prctl.h
_PR_SET_THP_DISABLE: Final = 41
_PR_GET_THP_DISABLE: Final = 42
_BOOT_LENGTH: Final = 13  # of a UUID's text: 48 bits
_START_TIME_FIELD: Final = 19  # of what follows the name in /proc/<pid>/stat


def now() -> datetime:
    """Return the current time with its zone."""
    return datetime.now(UTC)


def to_epoch_ms(moment: datetime) -> int:
    """Return a time as milliseconds since the epoch.

    >>> to_epoch_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000
    """
    return round(moment.timestamp() * 1000)


def new_token() -> str:
    """Return a name for one run that no other run has."""
    import uuid  # noqa: PLC0415 (apply and write need it)

    return uuid.uuid4().hex


def tool_name() -> str:
    """Return the name and version of this program, as plans and instants carry it."""
    return f"{DISTRIBUTION} {VERSION}"


def environment() -> Mapping[str, str]:
    """Return the environment variables of this process."""
    return os.environ


def set_variable(name: str, value: str) -> None:
    """Set an environment variable of this process and of the programs it starts."""
    os.environ[name] = value


def set_default_variable(name: str, value: str) -> None:
    """Set an environment variable unless it is set already."""
    os.environ.setdefault(name, value)


def count_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


@contextmanager
def small_pages() -> Iterator[None]:
    """Use no huge pages of memory within, in this process and the programs that it starts.

    A huge page is searched for and cleared whole. Work that uses its memory once or twice does not
    earn that back: a plan of a million files takes a tenth more CPU with them.
    """
    set_pages = _find_page_setting()
    before = set_pages(_PR_GET_THP_DISABLE, 0)
    if before != 0:  # small already, or not a setting of this system
        yield
        return
    set_pages(_PR_SET_THP_DISABLE, 1)
    try:
        yield
    finally:
        set_pages(_PR_SET_THP_DISABLE, 0)


def _find_page_setting() -> Callable[[int, int], int]:
    """Return prctl with an operation and its value, which returns -1 if it is not possible."""
    try:
        import ctypes  # noqa: PLC0415 (few commands need it, and some builds lack it)

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError, TypeError):  # not on Linux
        return lambda _operation, _value: -1
    return lambda operation, value: int(prctl(operation, *map(ctypes.c_ulong, (value, 0, 0, 0))))


def find_local_zone() -> str | None:
    """Return the name of this machine's time zone in the zone database; None if it has none."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 (few commands need it)

    name = os.environ.get("TZ", "").removeprefix(":")
    file = Path("/etc/localtime")
    if not name and file.exists():
        _, _, name = str(file.resolve()).rpartition("/zoneinfo/")
    elif not name:
        return "UTC"
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):  # an unknown name, or no name at all
        return None


def find_cache_folder() -> Path | None:
    """Return the folder of what later runs can use again; None for a user without a home.

    A variable that names no absolute path is ignored, as the XDG Base Directory Specification says.
    """
    if (named := Path(os.environ.get("XDG_CACHE_HOME", ""))).is_absolute():
        return named / "reconciler"
    if os.environ.get("HOME") == "":  # Python takes it for the root
        return None
    try:
        home = Path.home()
        has_home = home.is_absolute() and home.is_dir()
    except (RuntimeError, OSError):  # nobody knows it, or it may not be looked at
        return None
    return home / ".cache" / "reconciler" if has_home else None


def open_listing_cache(folder: Path) -> ListingCache | None:
    """Return the cache of listings in a folder; None where the system has no such clocks."""
    from reconciler.state.listing_memory import ListingCache  # noqa: PLC0415 (plans need it)
    from reconciler.storage.cache_folder import CacheFolder  # noqa: PLC0415
    from reconciler.storage.folder_states import ClockReading  # noqa: PLC0415

    try:
        mounts = _read_mounts()
        offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        boot = _boot_id()
    except (OSError, AttributeError):  # not on Linux
        return None
    clock = ClockReading(boot=boot, now_ns=time.time_ns(), offset_ns=offset, mounts=mounts)
    return ListingCache(cache=CacheFolder(folder / "listings"), clock=clock)


def are_on_this_machine(locations: Iterable[str]) -> bool:
    """Return whether all locations are on disks of this machine; False if that is not known."""
    from reconciler.storage import file_systems  # noqa: PLC0415 (commands import us early)

    try:
        return file_systems.are_on_this_machine(locations, _read_mounts())
    except OSError:  # not on Linux
        return False


def _read_mounts() -> str:
    return Path("/proc/self/mountinfo").read_text("utf-8", errors="surrogateescape")


@contextmanager
def temporary_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable during the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


def open_storage(ref: StorageRef | str, options: Mapping[str, Option] | None = None) -> Storage:
    """Open the storage at a location. Nothing is read yet.

    Options that name an environment variable take its value, which no message repeats. Raises
    SpecError if a variable is not set, and StorageError for a location without a store.
    """
    from reconciler.storage.api import StorageRef  # noqa: PLC0415 (commands import us early)
    from reconciler.storage.open import open_storage as open_at  # noqa: PLC0415

    location = ref if isinstance(ref, str) else ref.location
    around = _hash_surroundings() if "://" in location else 0  # a local disk needs no credentials
    if not isinstance(ref, str):
        return open_at(replace(ref, writer=ref.writer or new_token(), surroundings=around))
    references = {name: each for name, each in (options or {}).items() if not isinstance(each, str)}
    values = resolve_options(options or {})
    secrets = tuple(values[name] for name in references)
    pairs = tuple(sorted(values.items()))
    return open_at(StorageRef(ref, pairs, secrets, new_token(), surroundings=around))


def _hash_surroundings() -> int:
    """Return a number that differs if the variables or files of AWS's credentials have changed."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    changes = []
    for name, usual in _FILES_OF_AWS.items():
        try:
            changes.append(Path(variables.get(name, usual)).expanduser().stat().st_mtime_ns)
        except (OSError, RuntimeError):  # no file, or no home
            changes.append(0)
    return hash((frozenset(variables.items()), *changes))


def open_catalog(table: CatalogTable) -> CatalogClient:
    """Open the catalog of a table. Raises SpecError if a variable is not set, and CatalogError."""
    from reconciler.state.catalogs.open import open_catalog as open_at  # noqa: PLC0415 (few tables)

    return open_at(table, resolve_options(table.options))


def resolve_options(options: Mapping[str, Option]) -> dict[str, str]:
    """Return the options with references to environment variables replaced by their values.

    Raises SpecError with every variable that is not set.
    """
    check_variables(options.values())
    return {
        name: option if isinstance(option, str) else os.environ[option.variable]
        for name, option in options.items()
    }


def check_variables(options: Iterable[Option]) -> None:
    """Raise SpecError with every variable that is not set or empty, each once."""
    missing: dict[str, str] = {}
    for option in options:
        if not isinstance(option, str) and not os.environ.get(option.variable):
            missing.setdefault(option.variable, option.declared_at)
    if missing:
        raise SpecError(
            "\n".join(
                f"{position}{': ' * bool(position)}the variable {name} is not set; set it where "
                "reconciler runs"
                for name, position in missing.items()
            )
        )


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def current_process() -> Process:
    """Return the facts about this process that locks and heartbeats carry."""
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
    """Return whether the process of an owner runs; None if it is on another host."""
    return current_process().is_alive(owner)


def is_running(pid: int, started: str) -> bool:
    """Return whether this very process runs on this host; True if that is unknown.

    ``started`` tells it from a later process with the same pid.
    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # another user's process
    current = _process_start(pid)
    return not current or not started or current == started


def user_name() -> str:
    """Return the name of this process's user."""
    import getpass  # noqa: PLC0415 (apply needs it)

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


def _host_identity() -> str:
    """Return the host's name and boot, and the pid namespace if it is not the initial one.

    A pid means something only there. Machines of one image may share a name, and containers on
    different machines may share the number of their pid namespace. After a reboot, the host counts
    as another one.
    """
    import socket  # noqa: PLC0415 (apply needs it)

    name = socket.gethostname()
    try:
        boot = _boot_id()[:_BOOT_LENGTH]
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return name
    return f"{name}/{boot}" if namespace == _INITIAL_NAMESPACE else f"{name}/{boot}/{namespace}"


def _boot_id() -> str:
    """Return the id of this run of the kernel; raise OSError if the kernel gives none."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _process_start(pid: int) -> str | None:
    """Return when a process started, as text that no later process with its pid has.

    None if that is unknown. A process that ended and was not reaped yet gives ``ended``.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = _boot_id()
    except OSError:
        return None
    fields = status.rpartition(")")[2].split()
    return "ended" if fields[0] == "Z" else f"{boot}/{fields[_START_TIME_FIELD]}"
