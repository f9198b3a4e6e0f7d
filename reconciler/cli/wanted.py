"""What a command reads and how it writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

    from reconciler.reader.request import Asked
    from reconciler.storage.api import Storage

#: rows of a table for people, where nobody says how many
SHOWN: Final = 20


class RowFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a command reads and how. ``zone``: of the timeline, where a spec says it.

    ``skipping``: whether files are left out by their statistics.
    """

    storage: Storage
    asked: Asked
    zone: tzinfo | None
    where: str | None
    limit: int | None
    format: RowFormat
    master: str | None
    settings: Mapping[str, str]
    skipping: bool = True

    @property
    def index(self) -> Storage | None:
        """Where statistics are read; None: they are not asked."""
        from reconciler.storage.wrappers import ReadOnly  # noqa: PLC0415

        return ReadOnly(self.storage) if self.skipping else None
