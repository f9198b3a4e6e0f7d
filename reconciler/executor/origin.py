"""Who applies a plan, and from what: facts that instants and audit records carry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """None is what nobody knows.

    ``actor``: who had it applied, by what the caller says; no proof of it. ``find_spec_commit``: the
    commit of the specs, ending in ``-dirty`` where files differed from it. ``environment``: the
    name of the one chosen.
    """

    actor: str | None = None
    spec_commit: str | None = None
    environment: str | None = None
