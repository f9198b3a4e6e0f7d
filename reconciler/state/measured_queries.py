"""Encode and read measured query reads, as a clustering's extra metadata records them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Self

import numpy as np

from reconciler import canonical_json
from reconciler.arrays import Integers, Mask
from reconciler.lazy_dataclass import dataclass

#: keys of a clustering's extra metadata: of completed ones, of pending ones, and of both
QUERIES_KEY: Final = "reconciler.queries"
PREDICTED_KEY: Final = "reconciler.predicted"
CIRCUMSTANCES_KEY: Final = "reconciler.circumstances"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredQuery:
    """The reads of one query after a clustering, by the statistics of the table's files.

    ``where``: the query's text, because its name may change. It reads ``files`` and ``bytes`` of
    ``total_files`` and ``total_bytes``; a base file with its log files counts as one file.
    ``predicted_files``, ``predicted_bytes``: None if the reviewed plan has no prediction.
    ``unread``: number of unchanged files that were too many to measure; if there are any, all
    counts are those of the new files.
    """

    query: str
    where: str = ""
    files: int
    bytes: int
    of_files: int
    of_bytes: int
    predicted_files: int | None = None
    predicted_bytes: int | None = None
    unread: int = 0


def encode_measurements(measured: Sequence[MeasuredQuery]) -> str:
    """Return the value of ``QUERIES_KEY``; ``parse_measurements`` reads it.

    >>> measured = MeasuredQuery(query="q", files=1, bytes=2, of_files=3, of_bytes=4)
    >>> encode_measurements([measured])[:36]
    '[{"bytes":2,"files":1,"ofBytes":4,"o'
    """
    return canonical_json.to_bytes(canonical_json.to_document(measured)).decode()


def parse_measurements(extra: Mapping[str, str]) -> tuple[MeasuredQuery, ...]:
    """Return the measured queries in a clustering's extra metadata; none if it is damaged.

    They only inform people, so damaged ones are ignored.
    """
    try:
        document = json.loads(extra.get(QUERIES_KEY, "[]"))
        return tuple(canonical_json.from_document(MeasuredQuery, query) for query in document)
    except (ValueError, LookupError, TypeError, AttributeError):
        return ()


def encode_predictions(queries: Mapping[str, str], predictions: Sequence[Mapping[str, Any]]) -> str:
    """Return the value of ``PREDICTED_KEY``; ``parse_predictions`` reads it.

    ``queries``: their texts by name; ``predictions``: those of a plan.

    >>> parse_predictions({PREDICTED_KEY: encode_predictions({"q": "a = 1"}, [
    ...     {"query": "q", "filesAfter": 1, "bytesAfter": 2}])})
    {'a = 1': (1, 2)}
    """
    return canonical_json.to_bytes(
        [
            {"where": where, "files": query["filesAfter"], "bytes": query["bytesAfter"]}
            for query in predictions
            if (where := queries.get(str(query["query"])))
        ]
    ).decode()


def parse_predictions(extra: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return the files and bytes that a reviewed plan predicted, by the text of the query.

    A requested clustering has them for whoever finishes it. Damaged ones are ignored.
    """
    try:
        items = json.loads(extra.get(PREDICTED_KEY, "[]"))
        return {str(query["where"]): (int(query["files"]), int(query["bytes"])) for query in items}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringContext:
    """The conditions of a clustering besides its layout.

    ``target``: bytes of a file; ``remaining_slices``: file slices left to another run.
    """

    target: int
    remaining_slices: int = field(metadata={"name": "waiting"})

    @property
    def text(self) -> str:
        """Return the value of ``CIRCUMSTANCES_KEY``.

        >>> context = ClusteringContext(target=1, remaining_slices=2)
        >>> ClusteringContext.read({CIRCUMSTANCES_KEY: context.text}) == context
        True
        """
        return canonical_json.to_bytes(canonical_json.to_document(self)).decode()

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> Self | None:
        """Parse a clustering's extra metadata; None if it has no valid value."""
        try:
            return canonical_json.from_document(cls, json.loads(extra[CIRCUMSTANCES_KEY]))
        except (ValueError, LookupError, TypeError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryMeasurement:
    """The reads of each query from every file slice that may exist after a clustering.

    ``queries``: name and text of each; ``reads``: bool, queries by slices. By slice: ``group``,
    which rewrites or replaces it, -1 for one that stays in any case; ``is_new``; ``bytes``, with
    log files. ``predicted``: files and bytes by the text of the query. ``unread``: how many files
    stay whose footers were too many to read; then only new files are measured. ``problem``: why
    nothing was measured.
    """

    queries: tuple[tuple[str, str], ...]
    reads: Mask
    group: Integers
    is_new: Mask
    bytes: Integers
    predicted: Mapping[str, tuple[int, int]]
    unread: int = 0
    problem: str | None = None

    def select_groups(self, kept: Sequence[int]) -> tuple[MeasuredQuery, ...]:
        """Return what was measured, when only these groups are published."""
        is_kept = np.isin(self.group, np.array(kept, np.int64))
        is_read = np.where(self.is_new, is_kept, ~is_kept)
        if self.unread:
            is_read &= self.is_new
        return tuple(
            MeasuredQuery(
                query=name,
                where=where,
                files=int(np.count_nonzero(is_read & mask)),
                bytes=int(self.bytes[is_read & mask].sum()),
                of_files=int(np.count_nonzero(is_read)),
                of_bytes=int(self.bytes[is_read].sum()),
                predicted_files=self.predicted.get(where, (None, None))[0],
                predicted_bytes=self.predicted.get(where, (None, None))[1],
                unread=self.unread,
            )
            for (name, where), mask in zip(self.queries, self.reads, strict=True)
        )
