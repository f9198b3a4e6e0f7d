"""Keys of the extra metadata that instants of this tool carry."""

from __future__ import annotations

from typing import Final

#: the digest of the plan, and the name and version of this program
PLAN_DIGEST: Final = "reconciler.plan.digest"
TOOL: Final = "reconciler.tool"
