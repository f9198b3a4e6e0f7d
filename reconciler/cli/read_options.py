"""What a command reads and how it writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

    from reconciler.reader.request import ReadArguments
    from reconciler.storage.api import Storage

#: rows of a table for people, where nobody says how many
DEFAULT_ROW_LIMIT: Final = 20


class RowFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a command reads and how. ``zone``: of the timeline, where a spec says it.

    ``uses_index``: whether files are left out by their statistics.
    """

    storage: Storage
    request: ReadArguments
    zone: tzinfo | None
    where: str | None
    limit: int | None
    format: RowFormat
    master: str | None
    settings: Mapping[str, str]
    uses_index: bool = True

    @property
    def index(self) -> Storage | None:
        """Where statistics are read; None: they are not asked."""
        from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

        return ReadOnlyStorage(self.storage) if self.uses_index else None
