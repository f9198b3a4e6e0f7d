"""Decode any file of the timeline as plain data.

One table names the record for every action and state, as HoodieActiveTimeline writes them. A file
that may be empty decodes to None.
"""

from __future__ import annotations

import json
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.timeline.instant import Action, Instant, State

_PROFILE: Final = "HoodieCommitMetadata"
_REPLACE: Final = "HoodieReplaceCommitMetadata"
_REQUESTED_REPLACE: Final = "HoodieRequestedReplaceMetadata"

#: (action, state) -> the record, and whether the file may be empty
_RECORDS: Final[dict[tuple[Action, State], tuple[str | None, bool]]] = {
    (Action.COMMIT, State.REQUESTED): (None, True),
    (Action.COMMIT, State.INFLIGHT): (_PROFILE, True),
    (Action.COMMIT, State.COMPLETED): (_PROFILE, False),
    (Action.DELTACOMMIT, State.REQUESTED): (None, True),
    (Action.DELTACOMMIT, State.INFLIGHT): (_PROFILE, True),
    (Action.DELTACOMMIT, State.COMPLETED): (_PROFILE, False),
    (Action.COMPACTION, State.REQUESTED): ("HoodieCompactionPlan", False),
    (Action.COMPACTION, State.INFLIGHT): (None, True),
    (Action.LOGCOMPACTION, State.REQUESTED): ("HoodieCompactionPlan", False),
    (Action.LOGCOMPACTION, State.INFLIGHT): (None, True),
    (Action.REPLACECOMMIT, State.REQUESTED): (_REQUESTED_REPLACE, True),
    (Action.REPLACECOMMIT, State.INFLIGHT): (_PROFILE, True),
    (Action.REPLACECOMMIT, State.COMPLETED): (_REPLACE, False),
    (Action.CLUSTERING, State.REQUESTED): (_REQUESTED_REPLACE, False),
    (Action.CLUSTERING, State.INFLIGHT): (_PROFILE, True),
    (Action.CLEAN, State.REQUESTED): ("HoodieCleanerPlan", False),
    (Action.CLEAN, State.INFLIGHT): ("HoodieCleanerPlan", True),
    (Action.CLEAN, State.COMPLETED): ("HoodieCleanMetadata", False),
    (Action.ROLLBACK, State.REQUESTED): ("HoodieRollbackPlan", False),
    (Action.ROLLBACK, State.INFLIGHT): (None, True),
    (Action.ROLLBACK, State.COMPLETED): ("HoodieRollbackMetadata", False),
    (Action.RESTORE, State.REQUESTED): ("HoodieRestorePlan", False),
    (Action.RESTORE, State.INFLIGHT): (None, True),
    (Action.RESTORE, State.COMPLETED): ("HoodieRestoreMetadata", False),
    (Action.SAVEPOINT, State.INFLIGHT): (None, True),
    (Action.SAVEPOINT, State.COMPLETED): ("HoodieSavepointMetadata", False),
    (Action.INDEXING, State.REQUESTED): ("HoodieIndexPlan", False),
    (Action.INDEXING, State.INFLIGHT): (None, True),
    (Action.INDEXING, State.COMPLETED): ("HoodieIndexCommitMetadata", False),
}


def decode_instant_file(instant: Instant, data: bytes, path: str) -> dict[str, Any] | None:
    """Return the record in a timeline file as plain data, None for an allowed empty file.

    Raises FormatError naming ``path``.
    """
    record, may_be_empty = _RECORDS.get((instant.action, instant.state), (None, True))
    if not data:
        if may_be_empty:
            return None
        raise FormatError(
            path,
            f"is empty, expected a {record}",
            "restore it from a copy, or let Hudi repair it",
        )
    if record is None:
        raise FormatError(
            path, "must be empty but is not", "the file is damaged; restore it from a copy"
        )
    if not avro_container.is_container(data) and record in (_PROFILE, _REPLACE):
        with decoding(path, record):
            found = json.loads(data)
            require(isinstance(found, dict), "it is not a JSON object")
            return dict(found)
    return avro_container.decode_container(data, record, path)
