"""Read the plan of a rollback (HoodieRollbackPlan)."""

from __future__ import annotations

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import decoding


def parse_rolled_back_time(data: bytes, path: str) -> str:
    """Return the requested time of the instant that a rollback undoes; raises FormatError.

    >>> said = {"commitTime": "20260101000000000", "action": "commit"}
    >>> plan = {"instantToRollback": said, "RollbackRequests": [], "version": 1}
    >>> data = avro_container.encode_container("HoodieRollbackPlan.avsc", plan)
    >>> parse_rolled_back_time(data, "x.rollback.requested")
    '20260101000000000'
    """
    plan = avro_container.decode_container(data, "HoodieRollbackPlan", path)
    with decoding(path, "HoodieRollbackPlan"):
        return str(plan["instantToRollback"]["commitTime"])
