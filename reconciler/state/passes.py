"""How often partitions were laid out under one declaration, as clusterings say it of themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from reconciler.canonical import dumps

#: key of a clustering's extra metadata
PASSES: Final = "reconciler.passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """``partitions``: which pass over them a clustering was, by path; those not named: the first.

    ``asked``: digest of what was declared; under another declaration they are counted anew.
    """

    asked: str
    partitions: Mapping[str, int]

    @property
    def text(self) -> str:
        """The value of ``PASSES``.

        >>> Passes.read({PASSES: Passes(asked="sha256:1", partitions={"p=1": 2}).text})
        Passes(asked='sha256:1', partitions={'p=1': 2})
        """
        return dumps({"asked": self.asked, "partitions": dict(self.partitions)}).decode()

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> Self | None:
        """What a clustering's extra metadata says; None where it says nothing that can be read."""
        try:
            found = json.loads(extra[PASSES])
            passes = {str(path): int(nth) for path, nth in found["partitions"].items()}
            return cls(asked=str(found["asked"]), partitions=passes)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
