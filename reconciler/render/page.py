"""A page of bounded length that grows by whole blocks, so that it stays well-formed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from reconciler.lazy_dataclass import dataclass


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 characters; no code host counts more strictly.

    >>> utf16_length("a→"), utf16_length(chr(0x1F308))
    (2, 2)
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


#: code hosts accept 65 536 UTF-16 characters; as UTF-8 this is far below 262 144 bytes
COMMENT_LIMIT: Final = 60_000


@dataclass(slots=True)
class Page:
    """Text that grows by blocks and keeps room for its end. Lengths are in UTF-16 characters."""

    limit: int = COMMENT_LIMIT
    end: str = ""
    _reserved: int = 0
    _text: str = ""
    _length: int = 0

    @property
    def text(self) -> str:
        return self._text + self.end

    @property
    def room_left(self) -> int:
        return self.limit - self._length - utf16_length(self.end) - self._reserved

    def reserve(self, block: str) -> None:
        """Keep room for a block that is added later."""
        self._reserved = utf16_length(block)

    def add_block(self, block: str) -> bool:
        """Add the block if there is room for it, and return whether there was."""
        length = utf16_length(block)
        if length > self.room_left:
            return False
        self._text += block
        self._length += length
        return True

    def add_blocks(
        self,
        blocks: Iterable[str],
        count: int,
        share: float,
        describe_omitted: Callable[[int], str],
    ) -> None:
        """Add blocks in order up to a share of the room, then the text for the omitted ones.

        ``count``: number of blocks. Omitted blocks are not rendered.
        """
        budget = int(self.room_left * share)
        longest = utf16_length(describe_omitted(count))
        for number, block in enumerate(blocks):
            is_last = number + 1 == count
            needed = utf16_length(block) + (0 if is_last else longest)
            if needed > budget or not self.add_block(block):
                self.add_block(describe_omitted(count - number))
                return
            budget -= utf16_length(block)
