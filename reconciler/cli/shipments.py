"""Messages about packages that a command sends to Spark's workers, and the cache of archives."""

from __future__ import annotations

from pathlib import Path

from reconciler import runtime
from reconciler.cli.terminal import log_message
from reconciler.render.words import format_count, format_size
from reconciler.spark.shipping import Shipment


class ShipmentLog:
    """Reports shipments on standard error, with their size and how long they take."""

    def __init__(self) -> None:
        self._clock = runtime.SystemClock()
        self._began_ms = self._clock.now_ms()

    @property
    def cache(self) -> Path | None:
        folder = runtime.find_cache_folder()
        return None if folder is None else folder / "packages"

    def report_packing(self, packages: tuple[str, ...]) -> None:
        self._began_ms = self._clock.now_ms()
        _log(f"packing {format_count(len(packages), 'package')} of the driver for Spark's workers")
        log_message(f"packages: {', '.join(packages)}", level="debug")

    def report_sending(self, shipment: Shipment) -> None:
        count = format_count(len(shipment.packages), "package")
        packed = "packed by an earlier run" if shipment.was_packed else f"packed in {self._lap()}"
        _log(f"sending {count} to Spark's workers: {format_size(shipment.bytes)}, {packed}")
        self._began_ms = self._clock.now_ms()

    def report_arrival(self) -> None:
        _log(f"Spark's workers have the packages after {self._lap()}")

    def _lap(self) -> str:
        return f"{(self._clock.now_ms() - self._began_ms) / 1000:.1f} s"


def _log(text: str) -> None:
    log_message(text, event="ship")
