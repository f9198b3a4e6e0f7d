"""Which entry of a YAML text a comment belongs to.

A comment behind a value belongs to its entry. A comment line belongs to the entry below it, unless
it is indented deeper than that entry: then it ends the block in whose column it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from reconciler.lazy_dataclass import dataclass
from reconciler.spec.formatting.model import (
    Surrounded,
    TextCollection,
    TextDocument,
    TextEntry,
    iterate_entries,
)
from reconciler.spec.formatting.reader import ReadText

_COMMENT: Final = re.compile("(?<![^ \t\n\x85\u2028\u2029])#[^\n\x85\u2028\u2029]*")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its place; ``is_alone``: nothing else is on its line."""

    line: int
    column: int
    text: str
    is_alone: bool


def find_comments(read: ReadText) -> Iterator[Comment]:
    """Yield the comments of a text in order."""
    starts = [start for start, _ in read.spans]
    at = 0
    while (match := _COMMENT.search(read.text, at)) is not None:
        span = bisect_right(starts, match.start()) - 1
        if span >= 0 and match.start() < read.spans[span][1]:
            at = read.spans[span][1]
            continue
        line = bisect_right(read.offsets, match.start()) - 1
        column = match.start() - read.offsets[line]
        is_alone = not read.lines[line][:column].strip(" \t")
        yield Comment(line, column, match[0].rstrip(), is_alone)
        at = match.end()


def attach_comments(read: ReadText) -> None:
    """Give every comment and blank line of a text to an entry, a block or a document."""
    starts = [document.start for document in read.documents]
    comments: dict[int, list[Comment]] = {}
    for comment in find_comments(read):
        comments.setdefault(max(0, bisect_right(starts, comment.line) - 1), []).append(comment)
    for number, document in enumerate(read.documents):
        _Attachment(document, read).attach(comments.get(number, []))


class _Attachment:
    """Attaches the comments of one document."""

    def __init__(self, document: TextDocument, read: ReadText) -> None:
        self._document = document
        self._read = read
        self._entries: list[Surrounded] = list(iterate_entries(document.root))
        self._starts = [entry.start for entry, _ in self._entries]

    def attach(self, comments: list[Comment]) -> None:
        for comment in comments:
            entry = None if comment.is_alone else self._find_entry(comment.line)
            if entry is None:
                self._attach_line(comment)
            elif entry.remark:
                entry.lead.append(comment.text)
            else:
                entry.remark = comment.text
        for entry, _ in self._entries:
            if self._is_below_blank(entry.start) and (not entry.lead or entry.lead[-1]):
                entry.lead.append("")

    def _find_entry(self, line: int) -> TextEntry | None:
        """Return the innermost entry that a comment behind it belongs to.

        Brackets that open and close on the line count as one value.
        """
        found = [entry for entry, _ in self._entries if line in entry.ends]
        whole = (entry for entry in found if _is_flow(entry) and entry.ends == {line})
        return next(whole, found[-1] if found else None)

    def _attach_line(self, comment: Comment) -> None:
        target = self._find_target(comment)
        if self._is_below_blank(comment.line):
            target.append("")
        target.append(comment.text)

    def _find_target(self, comment: Comment) -> list[str]:
        """Return the comment lines that a comment line joins."""
        index = bisect_right(self._starts, comment.line)
        if index == 0:
            return self._document.head
        before, around = self._entries[index - 1]
        if index == len(self._entries):
            return _find_block(around, comment.column).foot
        below, around_below = self._entries[index]
        is_inside = around_below[-1] is before.node
        if is_inside or comment.column <= around_below[-1].column:
            return below.lead
        block = _find_block(around, comment.column)
        return below.lead if block is around_below[-1] else block.foot

    def _is_below_blank(self, line: int) -> bool:
        above = line - 1
        is_blank = above >= 0 and not self._read.lines[above].strip(" \t")
        return is_blank and above not in self._read.inner_lines


def _is_flow(entry: TextEntry) -> bool:
    return isinstance(entry.node, TextCollection) and entry.node.is_flow


def _find_block(around: tuple[TextCollection, ...], column: int) -> TextCollection:
    """Return the innermost block that begins at a column or left of it."""
    fitting = [block for block in around if block.column <= column]
    return fitting[-1] if fitting else around[0]
