"""What every instant of ours says of whose it is, in its extra metadata."""

from __future__ import annotations

from typing import Final

from reconciler.hudi.timeline.owner import Owner

SPEC_DIGEST: Final = "reconciler.spec.digest"
OWNER: Final = "reconciler.owner"
TOOL: Final = "reconciler.tool"


def make_ownership_metadata(spec_digest: str, owner: Owner) -> dict[str, str]:
    """The spec that an instant follows, the run that made it, and its tool."""
    return {SPEC_DIGEST: spec_digest, OWNER: owner.encode().decode(), TOOL: owner.tool}
