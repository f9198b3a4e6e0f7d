"""The source of bytes for readers of Hudi's formats: the part of a storage that they use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ListedEntry(Protocol):
    """A file or folder, as a storage lists it."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def modified_ms(self) -> int: ...
    @property
    def is_folder(self) -> bool: ...


class ByteSource(Protocol):
    """A source of bytes; paths are relative to the data table's root. A Storage is one.

    ``list`` raises NotFoundError when the folder is missing.
    """

    def list(self, folder: str) -> Sequence[ListedEntry]: ...
    def read(self, path: str) -> bytes: ...
    def read_range(self, path: str, start: int, length: int) -> bytes: ...
