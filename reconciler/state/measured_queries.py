"""What clusterings came to, by the queries that were declared: kept in their extra metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from reconciler.canonical_json import to_canonical_bytes

#: keys of a clustering's extra metadata: of completed ones alone, of pending ones alone, of both
QUERIES_KEY: Final = "reconciler.queries"
PREDICTED_KEY: Final = "reconciler.predicted"
CIRCUMSTANCES_KEY: Final = "reconciler.circumstances"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredQuery:
    """What one query reads of a table that was just clustered, by the statistics of its files.

    ``where``: the query's text; its name may be given to another. ``files``, ``bytes``: those that
    may hold a row for it, of so many; a base file with its log files counts as one, as in
    predictions. ``predicted_files``, ``predicted_bytes``: None where the reviewed plan said nothing
    of it.
    ``unread``: files that stayed as they were and were too many to look at; where there are any,
    all counts are of the new files alone.
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

    @property
    def document(self) -> dict[str, Any]:
        """As results, audit records and instants carry it; the inverse of ``parse``."""
        return {
            "query": self.query,
            "where": self.where,
            "predictedFiles": self.predicted_files,
            "predictedBytes": self.predicted_bytes,
            "files": self.files,
            "bytes": self.bytes,
            "ofFiles": self.of_files,
            "ofBytes": self.of_bytes,
            "unread": self.unread,
        }

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> Self:
        """Raises LookupError, TypeError, ValueError for what is no such document."""
        files, size = found["predictedFiles"], found["predictedBytes"]
        return cls(
            query=str(found["query"]),
            where=str(found.get("where", "")),
            files=int(found["files"]),
            bytes=int(found["bytes"]),
            of_files=int(found["ofFiles"]),
            of_bytes=int(found["ofBytes"]),
            predicted_files=None if files is None else int(files),
            predicted_bytes=None if size is None else int(size),
            unread=int(found["unread"]),
        )


def encode_measurements(measured: Sequence[MeasuredQuery]) -> str:
    """The value of ``QUERIES_KEY``; ``parse_measurements`` reads it.

    >>> measured_text([Measured(query="q", files=1, bytes=2, of_files=3, of_bytes=4)])[:36]
    '[{"bytes":2,"files":1,"ofBytes":4,"o'
    """
    return to_canonical_bytes([one.document for one in measured]).decode()


def parse_measurements(extra: Mapping[str, str]) -> tuple[MeasuredQuery, ...]:
    """What a clustering's extra metadata says of its queries; nothing where it cannot be read.

    It is told to people and decides nothing, so a damaged one is no reason to stop.
    """
    try:
        return tuple(map(MeasuredQuery.parse, json.loads(extra.get(QUERIES_KEY, "[]"))))
    except (ValueError, LookupError, TypeError, AttributeError):
        return ()


def encode_predictions(queries: Mapping[str, str], predictions: Sequence[Mapping[str, Any]]) -> str:
    """The value of ``PREDICTED_KEY``; ``parse_predictions`` reads it.

    ``queries``: their texts by name; ``predictions``: as a plan has them.

    >>> read_predicted({PREDICTED: predicted_text({"q": "a = 1"}, [
    ...     {"query": "q", "filesAfter": 1, "bytesAfter": 2}])})
    {'a = 1': (1, 2)}
    """
    return to_canonical_bytes(
        [
            {"where": where, "files": one["filesAfter"], "bytes": one["bytesAfter"]}
            for one in predictions
            if (where := queries.get(str(one["query"])))
        ]
    ).decode()


def parse_predictions(extra: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Files and bytes that a reviewed plan predicted, by the text of the query.

    Of what was requested, so that whoever finishes it knows them; nothing where it cannot be read.
    """
    try:
        found = json.loads(extra.get(PREDICTED_KEY, "[]"))
        return {str(one["where"]): (int(one["files"]), int(one["bytes"])) for one in found}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringContext:
    """What a clustering was done under, beside its layout: what comes of it depends on that.

    ``target``: bytes of a file; ``remaining_slices``: file slices that its plan left to another run.
    """

    target: int
    remaining_slices: int

    @property
    def text(self) -> str:
        """The value of ``CIRCUMSTANCES_KEY``.

        >>> Circumstances.read({CIRCUMSTANCES: Circumstances(target=1, waiting=2).text})
        Circumstances(target=1, waiting=2)
        """
        return to_canonical_bytes(
            {"target": self.target, "waiting": self.remaining_slices}
        ).decode()

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> Self | None:
        """What a clustering's extra metadata says; None where it says nothing that can be read."""
        try:
            found = json.loads(extra[CIRCUMSTANCES_KEY])
            return cls(target=int(found["target"]), remaining_slices=int(found["waiting"]))
        except (ValueError, LookupError, TypeError):
            return None
