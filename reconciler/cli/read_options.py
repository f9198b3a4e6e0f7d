"""The options of ``reconciler read``, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

    from reconciler.reader.request import ReadArguments
    from reconciler.storage.api import Storage

#: rows to show as text if no limit is given
DEFAULT_ROW_LIMIT: Final = 20


class RowFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read and how to write it.

    ``zone`` is the timeline's zone, if a spec gives it. ``uses_index``: whether statistics of the
    index exclude files.
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
        """Return the storage with the index; None if the index is not used."""
        from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

        return ReadOnlyStorage(self.storage) if self.uses_index else None
