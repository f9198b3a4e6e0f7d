"""A completed instant with the bytes of its files, as the writers of an archive take it.

Hudi archives commits, delta commits, replace commits, cleans and rollbacks. Savepoints, restores
and indexings stay in the active timeline. Source: TimelineArchiverV1 and V2 (getInstantsToArchive).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import decode_container, is_container
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.lazy_dataclass import dataclass

#: the record of a completed file; other actions are not archived
_COMPLETED: Final = {
    Action.COMMIT: "HoodieCommitMetadata",
    Action.DELTACOMMIT: "HoodieCommitMetadata",
    Action.REPLACECOMMIT: "HoodieReplaceCommitMetadata",
    Action.CLEAN: "HoodieCleanMetadata",
    Action.ROLLBACK: "HoodieRollbackMetadata",
}
#: the record of a requested file; other ones have no content
_REQUESTED: Final = {
    Action.COMPACTION: "HoodieCompactionPlan",
    Action.LOGCOMPACTION: "HoodieCompactionPlan",
    Action.REPLACECOMMIT: "HoodieRequestedReplaceMetadata",
    Action.CLUSTERING: "HoodieRequestedReplaceMetadata",
    Action.CLEAN: "HoodieCleanerPlan",
    Action.ROLLBACK: "HoodieRollbackPlan",
}
#: the record of an inflight file, which may be empty as well
_INFLIGHT: Final = {
    Action.COMMIT: "HoodieCommitMetadata",
    Action.DELTACOMMIT: "HoodieCommitMetadata",
    Action.REPLACECOMMIT: "HoodieCommitMetadata",
    Action.CLUSTERING: "HoodieCommitMetadata",
    Action.CLEAN: "HoodieCleanerPlan",
}
_BY_STATE: Final = {
    State.REQUESTED: _REQUESTED,
    State.INFLIGHT: _INFLIGHT,
    State.COMPLETED: _COMPLETED,
}
#: what a commit began as if its requested file has a plan
_PLANNED: Final = {Action.COMMIT: Action.COMPACTION, Action.DELTACOMMIT: Action.LOGCOMPACTION}
#: records that layout 1 writes as JSON
_JSON: Final = frozenset({"HoodieCommitMetadata", "HoodieReplaceCommitMetadata"})

#: actions that an archive can hold
ARCHIVABLE: Final = frozenset(_COMPLETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivableInstant:
    """A completed instant and the bytes of its files; None for a file that does not exist.

    ``action``: as completed, so that of a compaction is COMMIT. ``completion``: the completion
    time, which layout 2 archives. The other times are modification times in milliseconds since
    1970, which layout 1 archives. ``began_as``: the action of its pending files; without it, the
    bytes decide. ``folder``: where the files are, for messages.
    """

    requested: str
    completion: str
    action: Action
    requested_bytes: bytes | None
    inflight_bytes: bytes | None
    completed_bytes: bytes
    requested_ms: int = 0
    inflight_ms: int = 0
    completed_ms: int = 0
    began_as: Action | None = None
    folder: str = ""

    def __post_init__(self) -> None:
        if self.action not in ARCHIVABLE:
            raise UnsupportedError(
                f"{self.requested}: Hudi does not archive a {self.action}; leave it in the active "
                "timeline"
            )

    @property
    def pending_action(self) -> Action:
        """The action in the names of the pending files.

        >>> ArchivableInstant(
        ...     requested="1", completion="2", action=Action.COMMIT, requested_bytes=b"plan",
        ...     inflight_bytes=b"", completed_bytes=b"",
        ... ).pending_action.value
        'compaction'
        """
        if self.began_as is not None:
            return self.began_as
        return _PLANNED.get(self.action, self.action) if self.requested_bytes else self.action

    def get_bytes(self, state: State) -> bytes | None:
        """Return the bytes of the file of a state; None if there is no such file."""
        match state:
            case State.REQUESTED:
                return self.requested_bytes
            case State.INFLIGHT:
                return self.inflight_bytes
            case State.COMPLETED:
                return self.completed_bytes

    def get_modified_ms(self, state: State) -> int:
        """Return the modification time of the file of a state."""
        match state:
            case State.REQUESTED:
                return self.requested_ms
            case State.INFLIGHT:
                return self.inflight_ms
            case State.COMPLETED:
                return self.completed_ms

    def get_action(self, state: State) -> Action:
        """Return the action in the name of the file of a state."""
        return self.action if state is State.COMPLETED else self.pending_action

    def make_path(self, state: State, *, with_completion: bool) -> str:
        """Return the path of the file of a state; only layout 2 names the completion time."""
        completion = self.completion if with_completion and state is State.COMPLETED else None
        name = Instant(self.requested, self.get_action(state), state, completion).file_name
        return f"{self.folder}/{name}" if self.folder else name

    def decode(
        self,
        state: State,
        *,
        with_completion: bool,
        read_container: Callable[[bytes, str, str], Any] = decode_container,
    ) -> tuple[str, Any] | None:
        """Return the name and the content of the record of a state.

        None without content, and for a file whose content Hudi does not read. ``read_container``
        decodes an Avro container, given its record's name and its path. Raises FormatError naming
        the file for bytes that are no such record.
        """
        data, path = self.get_bytes(state), self.make_path(state, with_completion=with_completion)
        record = _BY_STATE[state].get(self.get_action(state))
        if not data or record is None:
            return None
        if record in _JSON and not is_container(data):
            return record, _read_json(data, record, path)
        return record, read_container(data, record, path)


def _read_json(data: bytes, record: str, path: str) -> dict[str, Any]:
    with decoding(path, record):
        found = json.loads(data)
        require(isinstance(found, dict), "it is not a JSON object")
        return dict(found)
