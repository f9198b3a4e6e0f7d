"""Name who applies a plan and from which specs, for instants and audit records."""

from __future__ import annotations

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The user who applies a plan, and the specs' commit and environment; None is unknown.

    ``actor``: who had it applied, by what the caller says; no proof of it. ``spec_commit``: the
    commit of the specs, ending in ``-dirty`` if files differed from it. ``environment``: its name.
    """

    actor: str | None = None
    spec_commit: str | None = None
    environment: str | None = None
