"""Rules for what becomes of the pending work of others."""

from __future__ import annotations

from reconciler.spec.rule_block import Block


def check_concurrency(block: Block) -> None:
    """Warn about limits that take work from writers that live, and about a lock that is missing."""
    if block.data.get("staleAfter") == 0:
        message = "0 takes over cleans that are still running"
        block.warn("staleAfter", message, "give running cleans time, such as 1h")
    if block.data.get("heartbeatTimeout") == 0:
        message = "0 rolls back writes that are still running"
        block.warn("heartbeatTimeout", message, "give running writers time, such as 2m")
    if block.data.get("pending", {}).get("after") == 0:
        message = "0 takes clusterings and compactions from writers that are still at work"
        block.warn("pending.after", message, "give running table services time, such as 6h")
    pending = block.find_block("pending")
    if pending and block.data.get("lock", {}).get("provider") == "none":
        for service in ("clustering", "compaction"):
            if (wanted := pending.data.get(service, "report")) != "report":
                message = f"{wanted} needs a lock: without one its writer may be at work"
                pending.warn(service, message, "declare another lock, or write report")
