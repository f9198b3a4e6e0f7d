"""Encode and read the layout that a clustering records, so that the next does not repeat its work.

The records are on the timeline. Reconciler's clusterings record their row order and their passes in
their extra metadata. Hudi's plans record only the sort columns. If Hudi executes a clustering of
reconciler, the plan has the record, because Hudi writes the completed file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Final, Self

from reconciler import canonical_json
from reconciler.errors import FormatError
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import Clustering

#: keys of a clustering's extra metadata
LAYOUT_KEY: Final = "reconciler.layout"
PASSES_KEY: Final = "reconciler.passes"
#: key of a plan's extra metadata that says who executes it
EXECUTOR_KEY: Final = "reconciler.executor"
HUDI_EXECUTOR: Final = "hudi"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringLayout:
    """The row order of a clustering. Without columns files are packed in their row order."""

    columns: tuple[str, ...] = ()
    curve: str | None = None
    mapping: str | None = None

    @property
    def text(self) -> str:
        """Return the value of ``LAYOUT_KEY``; the inverse of ``parse``.

        >>> ClusteringLayout(columns=("x",), curve="linear", mapping="rank").text
        '{"columns":["x"],"curve":"linear","mapping":"rank"}'
        """
        return canonical_json.to_bytes(canonical_json.to_document(self)).decode()

    @classmethod
    def parse(cls, text: str, path: str) -> Self:
        """Parse the layout in an instant's extra metadata; raises FormatError naming ``path``."""
        try:
            document = json.loads(text)
            columns, rest = document["columns"], (document["curve"], document["mapping"])
            if isinstance(columns, list) and all(isinstance(name, str) for name in columns):
                curve, mapping = (None if part is None else str(part) for part in rest)
                return cls(columns=tuple(columns), curve=curve, mapping=mapping)
        except (ValueError, LookupError, TypeError):
            pass
        raise FormatError(
            path, f"its {LAYOUT_KEY} is no layout", "the file is damaged; restore it from a copy"
        )


def declared_layout(clustering: Clustering) -> ClusteringLayout:
    """Return the declared row order."""
    if not clustering.columns:
        return ClusteringLayout()
    return ClusteringLayout(
        columns=clustering.columns, curve=clustering.curve, mapping=clustering.mapping
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPasses:
    """The pass number of a clustering in each of its partitions; 1 if a partition is not listed.

    ``declaration_digest``: digest of the declared goals; with other goals the count starts again.
    """

    declaration_digest: str = field(metadata={"name": "asked"})
    partitions: Mapping[str, int]

    @property
    def text(self) -> str:
        """Return the value of ``PASSES_KEY``.

        >>> passes = RecordedPasses(declaration_digest="sha256:1", partitions={"p=1": 2})
        >>> RecordedPasses.read({PASSES_KEY: passes.text}) == passes
        True
        """
        return canonical_json.to_bytes(canonical_json.to_document(self)).decode()

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> Self | None:
        """Parse a clustering's extra metadata; None if it has no valid value."""
        try:
            document = json.loads(extra[PASSES_KEY])
            passes = {str(path): int(nth) for path, nth in document["partitions"].items()}
            return cls(declaration_digest=str(document["asked"]), partitions=passes)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastClustering:
    """A completed clustering of the active timeline, which wrote every base file of its instant.

    ``layout`` is None if the row order was not recorded; one of Hudi has only columns.
    ``extra``: extra metadata of the completed file.
    """

    instant: str
    layout: ClusteringLayout | None
    extra: Mapping[str, str] = field(default_factory=dict, compare=False)
