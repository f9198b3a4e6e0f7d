"""Hold file names by folder in one column of text, without an object for each name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class FolderNames(Mapping[str, tuple[str, ...]]):
    """File names by folder, which become texts where they are asked for.

    ``ends``: int64 per folder, the row after its last name; ``names``: pyarrow string array.
    ``numbers``: folder -> its place in ``ends``.
    """

    numbers: Mapping[str, int]
    ends: Integers
    names: Any

    @classmethod
    def build(cls, folders: Mapping[str, Sequence[str]]) -> Self:
        """Build the column.

        >>> FolderNames.build({"p=1": ("a", "b"), "p=2": ()})["p=1"]
        ('a', 'b')
        """
        counts = np.fromiter(map(len, folders.values()), np.int64, len(folders))
        names = to_arrow(list(chain.from_iterable(folders.values())))
        return cls({path: number for number, path in enumerate(folders)}, np.cumsum(counts), names)

    def __getitem__(self, folder: str) -> tuple[str, ...]:
        number = self.numbers[folder]
        start = int(self.ends[number - 1]) if number else 0
        return tuple(self.names[start : int(self.ends[number])].to_pylist())

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)
