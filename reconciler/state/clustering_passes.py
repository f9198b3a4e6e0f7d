"""The pass numbers of a clustering per partition, as recorded in its extra metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from reconciler import canonical_json

#: key of a clustering's extra metadata
PASSES_KEY: Final = "reconciler.passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPasses:
    """The pass number of a clustering in each of its partitions; 1 if a partition is not listed.

    ``declaration_digest``: digest of the declared goals; with other goals the count starts again.
    """

    declaration_digest: str
    partitions: Mapping[str, int]

    @property
    def text(self) -> str:
        """Return the value of ``PASSES_KEY``.

        >>> passes = RecordedPasses(declaration_digest="sha256:1", partitions={"p=1": 2})
        >>> RecordedPasses.read({PASSES_KEY: passes.text}) == passes
        True
        """
        return canonical_json.to_bytes(
            {"asked": self.declaration_digest, "partitions": dict(self.partitions)}
        ).decode()

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> Self | None:
        """Parse a clustering's extra metadata; None if it has no valid value."""
        try:
            found = json.loads(extra[PASSES_KEY])
            passes = {str(path): int(nth) for path, nth in found["partitions"].items()}
            return cls(declaration_digest=str(found["asked"]), partitions=passes)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
