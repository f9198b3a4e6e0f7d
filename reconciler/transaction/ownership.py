"""The extra metadata by which every instant of ours names its spec, owner and tool."""

from __future__ import annotations

from typing import Final

from reconciler.hudi.timeline.owner import Owner

SPEC_DIGEST: Final = "reconciler.spec.digest"
OWNER: Final = "reconciler.owner"
TOOL: Final = "reconciler.tool"


def make_ownership_metadata(spec_digest: str, owner: Owner) -> dict[str, str]:
    """Return the extra metadata that names an instant's spec, its run and its tool."""
    return {SPEC_DIGEST: spec_digest, OWNER: owner.encode().decode(), TOOL: owner.tool}
