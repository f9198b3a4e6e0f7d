"""Send the driver's own packages to the workers of a session, where the setting asks for it.

The archive goes through Spark's file server once per executor, which unpacks it in its working
folder. That folder is put on the path of Python's workers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.spark.driver_packages import find_distributions, list_files
from reconciler.spark.package_archive import find_packed, name_archive, pack_files

#: a setting of Spark: true sends the driver's packages to the workers
SHIP: Final = "spark.reconciler.ship"
#: what most work imports; a session that needs one of it gets all of it in one archive
_COMMON: Final = ("fastavro", "google_crc32c", "numpy", "pyarrow", "tzdata", "xxhash")
_PATH: Final = "PYTHONPATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """Packages for the workers of a session: names, and the bytes of their archive.

    ``was_packed``: an earlier run has packed it.
    """

    packages: tuple[str, ...]
    bytes: int
    was_packed: bool


class ShipmentListener(Protocol):
    """What a command does about shipments: it reports them, and keeps archives in a cache."""

    @property
    def cache(self) -> Path | None:
        """The folder of archives that earlier runs have packed."""

    def report_packing(self, packages: tuple[str, ...]) -> None:
        """Report that packages are going to be packed."""

    def report_sending(self, shipment: Shipment) -> None:
        """Report that packages are ready, and that workers fetch them now."""

    def report_arrival(self) -> None:
        """Report that workers have imported what was sent."""


_LISTENERS: Final[list[ShipmentListener]] = []
#: per SparkContext, the distributions that its workers were sent
_SENT: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()


@contextlib.contextmanager
def listen_to_shipments(listener: ShipmentListener) -> Iterator[None]:
    """Let a listener hear of the shipments of the block."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def wants_shipping(context: Any) -> bool:
    """Return whether the session's settings ask for it; ReconcilerError for another text."""
    return parse_shipping(str(context.getConf().get(SHIP, "false")))


def parse_shipping(text: str) -> bool:
    """Return the value of the setting; ReconcilerError for text that is not true or false."""
    if text.lower() not in ("true", "false"):
        raise ReconcilerError(f"{SHIP}={text}: write true or false")
    return text.lower() == "true"


def send_packages(context: Any, packages: Iterable[str]) -> None:
    """Send packages, and what they require, to the workers of a session, unless they have them.

    Raises ReconcilerError if they cannot be packed.
    """
    wanted = set(packages)
    if not wanted.isdisjoint(_COMMON):
        wanted.update(_COMMON)
    sent = _SENT.setdefault(context, set())
    new = {
        name: each for name, each in find_distributions(sorted(wanted)).items() if name not in sent
    }
    if not new:
        return
    files = list_files(new)
    names, archive = tuple(sorted(new)), name_archive(files)
    packed = _find_packed(archive)
    if packed is None:
        for listener in _LISTENERS:
            listener.report_packing(names)
    path = packed or pack_files(files, _list_folders(), archive)
    shipment = Shipment(packages=names, bytes=path.stat().st_size, was_packed=packed is not None)
    for listener in _LISTENERS:
        listener.report_sending(shipment)
    context.addArchive(path.as_uri())
    before = context.environment.get(_PATH)
    # an executor unpacks archives in the folder that it and its Python run in
    context.environment[_PATH] = os.pathsep.join([f"./{archive}", *([before] if before else [])])
    sent.update(new)


def report_arrival() -> None:
    """Report to listeners that workers have imported what was sent."""
    for listener in _LISTENERS:
        listener.report_arrival()


def _find_packed(archive: str) -> Path | None:
    caches = (listener.cache for listener in _LISTENERS if listener.cache is not None)
    return next((found for cache in caches if (found := find_packed(cache, archive))), None)


def _list_folders() -> list[Path]:
    """Return where an archive may be made: a cache, else the folder of the session."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    caches = [listener.cache for listener in _LISTENERS if listener.cache is not None]
    # executors fetch it whenever they start, so it must last as long as the session; in the root
    # itself the driver's own unpacked archive would take its place
    return [*caches, Path(SparkFiles.getRootDirectory()) / "packages"]
