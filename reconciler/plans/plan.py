"""The plan of several tables, which carries its digest."""

from __future__ import annotations

import itertools
from functools import cached_property

from reconciler.lazy_dataclass import dataclass
from reconciler.plans import encode
from reconciler.plans.model import Selection, TablePlan


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A reviewed plan. ``created_at``: ISO-8601 with offset; ``tool``: name and version.

    ``selection`` is None if no selector was used.
    """

    created_at: str
    tool: str
    tables: tuple[TablePlan, ...]
    selection: Selection | None = None

    @cached_property
    def digest(self) -> str:
        """Return the digest of everything but ``digest``, ``createdAt`` and ``tool``.

        It is computed once: when the plan is loaded, written or first asked for it.
        """
        body = encode.encode_body(self.tables, self.selection)
        return encode.digest_chunks(itertools.chain([b"{"], body, [b"}"]))

    def keep_digest(self, digest: str) -> str:
        """Keep a digest that was computed while the plan was read or written, and return it."""
        self.__dict__["digest"] = digest
        return digest
