"""The two Avro payloads of a clean: the plan of its requested file and what its completed file says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.apply.executor import Batch
from reconciler.hudi.instant import Instant
from reconciler.hudi.owner import Owner
from reconciler.hudi.timeline import Timeline
from reconciler.state.model import TableState

PLAN_DIGEST: Final = "reconciler.plan.digest"
SPEC_DIGEST: Final = "reconciler.spec.digest"
OWNER: Final = "reconciler.owner"
TOOL: Final = "reconciler.tool"
DELETE_PARTITIONS: Final = "reconciler.delete.partitions"
SAVEPOINTED: Final = "savepointed_timestamps"

#: A clean that names no file can't be executed by Hudi before 1.2 and blocks every later one; a file
#: that is gone can. So a clean of nothing but partition folders names one that never existed.
PLACEHOLDER: Final = "00000000-0000-0000-0000-000000000000-0_0-0-0_00000000000000000.parquet"


def extra_metadata(
    state: TableState,
    *,
    plan_digest: str,
    spec_digest: str,
    owner: Owner,
    delete_partitions: Sequence[str],
) -> dict[str, str]:
    """What the requested and the completed file of a clean of ours carry besides Hudi's own.

    Savepoints as Hudi has them: of partitioned tables only, so that a later clean notices a removed
    one.
    """
    extra = {
        PLAN_DIGEST: plan_digest,
        SPEC_DIGEST: spec_digest,
        OWNER: owner.encode().decode(),
        TOOL: owner.tool,
    }
    savepoints = sorted(s.instant for s in state.savepoints if s.completed)
    if savepoints and state.is_partitioned:
        extra[SAVEPOINTED] = ",".join(savepoints)
    if delete_partitions:
        extra[DELETE_PARTITIONS] = json.dumps(sorted(delete_partitions))
    return extra
