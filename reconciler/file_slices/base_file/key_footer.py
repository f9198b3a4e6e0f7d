"""Collect what a base file's footer holds about record keys: their range and a bloom filter.

A file that follows another one in its group often has the same keys in the same order. Then its
filter is the older file's, bit for bit, and nearly nothing has to be hashed. Some keys are looked
up in it nevertheless, because a filter that lacks a key hides the key's row from every later write.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.file_slices.base_file.column_ranges import KeyRange
from reconciler.file_slices.base_file.settings import (
    BLOOM,
    BLOOM_CODE,
    MAX_KEY,
    MIN_KEY,
    BaseFileSettings,
)
from reconciler.hudi.codecs.bloom import BloomBuilder, BloomFilter

#: of so many keys that a filter should have, one is looked up
_LOOKED_UP: Final = 64
_RECORD_KEY: Final = "_hoodie_record_key"


class StaleFilterError(Exception):
    """A bloom filter lacks a key of its file; a new one is to be built of all keys."""


class KeyFooter:
    """Collects keys in the order of the file's rows."""

    def __init__(self, settings: BaseFileSettings) -> None:
        self._settings = settings
        self._bloom = BloomBuilder(settings.bloom) if settings.bloom and settings.has_keys else None
        self._known: BloomFilter | None = None
        self._known_left = 0
        self.range = KeyRange()

    def continue_filter(self, footer: Any, path: str) -> None:
        """Take over the filter of a file whose keys come first, unless it has another form."""
        shape, metadata = self._settings.bloom, footer.metadata or {}
        text = metadata.get(BLOOM.encode())
        if self._bloom is None or shape is None or text is None:
            return
        code = metadata.get(BLOOM_CODE.encode(), b"SIMPLE").decode(errors="replace")
        known = BloomFilter.parse(text, code, path, max_entries=shape.max_entries)
        if known.shape == shape and known.has_form_of(footer.num_rows):
            self._bloom = BloomBuilder.from_filter(known, footer.num_rows)
            self._known, self._known_left = known, footer.num_rows

    def add(self, rows: Any) -> None:
        """Add the keys of rows; raises StaleFilterError."""
        if not self._settings.has_keys:
            return
        keys = rows.column(_RECORD_KEY)
        self.range.add(keys)
        if self._bloom is None:
            return
        known = min(self._known_left, len(keys))
        if self._known is not None and known:
            some = keys.take(to_arrow(np.arange(0, known, _LOOKED_UP)))
            if not self._known.contains(some).all():
                raise StaleFilterError
            self._known_left -= known
        self._bloom.add(keys.slice(known))

    @property
    def text_bytes(self) -> int:
        """The length of the filter's text."""
        return self._bloom.text_bytes if self._bloom else 0

    @property
    def footer_metadata(self) -> dict[str, str]:
        """The footer's pairs of names and values."""
        metadata = {}
        if self._bloom:
            metadata[BLOOM] = self._bloom.build().text
            shape = self._settings.bloom
            if shape and shape.code != "SIMPLE":  # Hudi names only other types
                metadata[BLOOM_CODE] = shape.code
        has_range = self._settings.has_key_range
        if has_range and self.range.least is not None and self.range.greatest is not None:
            metadata |= {MIN_KEY: self.range.least, MAX_KEY: self.range.greatest}
        return metadata
