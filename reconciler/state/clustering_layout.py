"""How past clusterings laid a table out: the memory that keeps the next one from doing it again.

The timeline is the memory. Our own clusterings say columns, curve and mapping in their extra
metadata; Hudi's plans say the sort columns alone, and its executor's options are nowhere. What Hudi
executes for us says it in its plan, since Hudi writes the completed file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from reconciler.canonical_json import to_canonical_bytes
from reconciler.errors import FormatError

#: key of a clustering's extra metadata
LAYOUT_KEY: Final = "reconciler.layout"
#: key of a plan's extra metadata, which says who was to execute it
EXECUTOR_KEY: Final = "reconciler.executor"
HUDI_EXECUTOR: Final = "hudi"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringLayout:
    """What orders the rows. No columns: files are packed, rows lie as they came."""

    columns: tuple[str, ...] = ()
    curve: str | None = None
    mapping: str | None = None

    @property
    def text(self) -> str:
        """The value of ``LAYOUT_KEY``; the inverse of ``parse``.

        >>> Layout(columns=("x",), curve="linear", mapping="rank").text
        '{"columns":["x"],"curve":"linear","mapping":"rank"}'
        """
        found = {"columns": list(self.columns), "curve": self.curve, "mapping": self.mapping}
        return to_canonical_bytes(found).decode()

    @classmethod
    def parse(cls, text: str, path: str) -> Self:
        """The layout in an instant's extra metadata; raises FormatError naming ``path``."""
        try:
            found = json.loads(text)
            columns, rest = found["columns"], (found["curve"], found["mapping"])
            if isinstance(columns, list) and all(isinstance(name, str) for name in columns):
                curve, mapping = (None if part is None else str(part) for part in rest)
                return cls(columns=tuple(columns), curve=curve, mapping=mapping)
        except (ValueError, LookupError, TypeError):
            pass
        raise FormatError(
            path, f"its {LAYOUT_KEY} is no layout", "the file is damaged; restore it from a copy"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastClustering:
    """A completed clustering of the active timeline; every base file of its time is its own.

    ``layout`` is None where nobody wrote down how rows were ordered; Hudi's has columns alone.
    ``extra``: the completed file's extra metadata.
    """

    instant: str
    layout: ClusteringLayout | None
    extra: Mapping[str, str] = field(default_factory=dict, compare=False)
