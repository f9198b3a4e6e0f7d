"""How often partitions were laid out under one declaration, as clusterings say it of themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from reconciler.canonical_json import to_canonical_bytes

#: key of a clustering's extra metadata
PASSES_KEY: Final = "reconciler.passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPasses:
    """``partitions``: which pass over them a clustering was, by path; those not named: the first.

    ``declaration_digest``: digest of what was declared; under another declaration they are counted anew.
    """

    declaration_digest: str
    partitions: Mapping[str, int]

    @property
    def text(self) -> str:
        """The value of ``PASSES_KEY``.

        >>> Passes.read({PASSES: Passes(asked="sha256:1", partitions={"p=1": 2}).text})
        Passes(asked='sha256:1', partitions={'p=1': 2})
        """
        return to_canonical_bytes(
            {"asked": self.declaration_digest, "partitions": dict(self.partitions)}
        ).decode()

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> Self | None:
        """What a clustering's extra metadata says; None where it says nothing that can be read."""
        try:
            found = json.loads(extra[PASSES_KEY])
            passes = {str(path): int(nth) for path, nth in found["partitions"].items()}
            return cls(declaration_digest=str(found["asked"]), partitions=passes)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
