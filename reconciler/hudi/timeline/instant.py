"""An instant of the timeline, and its file name.

Only layout 2 puts the completion time into a completed file's name. In both layouts the inflight
file of a commit has no action in its name. Source: Hudi's InstantFileNameGeneratorV1 (layout 1) and
V2 (layout 2).
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Final, Self

from reconciler.errors import UnsupportedError
from reconciler.lazy_dataclass import dataclass

#: digits of an instant down to seconds; more digits are a fraction
SECOND_DIGITS: Final = 14
_NAME: Final = re.compile(r"(\d+)(?:_(\d+))?\.([A-Za-z]+)(?:\.([A-Za-z]+))?")


class Action(StrEnum):
    """The kind of an instant; the value is the spelling on disk."""

    COMMIT = "commit"
    DELTACOMMIT = "deltacommit"
    COMPACTION = "compaction"
    LOGCOMPACTION = "logcompaction"
    REPLACECOMMIT = "replacecommit"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"
    SCHEMACOMMIT = "schemacommit"

    @property
    def completes_as(self) -> Action:
        """The action in the completed file's name: a compaction ends as a commit.

        >>> Action.CLUSTERING.completes_as.value
        'replacecommit'
        """
        return _COMPLETES_AS.get(self, self)


_COMPLETES_AS: Final = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOGCOMPACTION: Action.DELTACOMMIT,
    Action.CLUSTERING: Action.REPLACECOMMIT,
}

#: completed actions that write data
COMMITS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})
#: every action, pending or not, that writes data files (Hudi's write timeline)
WRITES: Final = COMMITS | frozenset({Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING})


class State(StrEnum):
    """The state of an instant; the value is the spelling in Hudi's Avro payloads."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"

    @property
    def rank(self) -> int:
        return ("REQUESTED", "INFLIGHT", "COMPLETED").index(self.value)


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A requested time, an action and a state; ``completed`` is the completion time, if known.

    Times are strings of digits in the timeline's zone and compare as strings.

    >>> i = Instant.parse("20240101120000000_20240101120005123.commit")
    >>> i.requested, i.action.value, i.state.value, i.completed
    ('20240101120000000', 'commit', 'COMPLETED', '20240101120005123')
    >>> Instant.parse("20240101120000000.inflight").file_name
    '20240101120000000.inflight'
    >>> Instant.parse("hoodie.properties") is None
    True
    """

    requested: str
    action: Action
    state: State
    completed: str | None = None

    @classmethod
    def parse(cls, file_name: str) -> Self | None:
        """Return the instant of a file name, None for a name that is not of an instant.

        Raises UnsupportedError for an unknown action, because ignoring it could hide a write.
        """
        match = _NAME.fullmatch(file_name)
        if match is None:
            return None
        requested, completed, word, suffix = match.groups()
        if word == "inflight" and suffix is None and completed is None:
            return cls(requested, Action.COMMIT, State.INFLIGHT)
        if suffix is not None and suffix not in ("requested", "inflight"):
            return None
        try:
            action = Action(word)
        except ValueError:
            raise UnsupportedError(
                f"{file_name}: unknown timeline action {word!r}; use a reconciler version that "
                "knows it. Nothing was done to the table"
            ) from None
        state = State.COMPLETED if suffix is None else State(suffix.upper())
        return cls(requested, action, state, completed)

    @property
    def file_name(self) -> str:
        """The name on disk; the inverse of ``parse``."""
        if self.state is State.COMPLETED:
            stamp = f"{self.requested}_{self.completed}" if self.completed else self.requested
            return f"{stamp}.{self.action}"
        if self.action is Action.COMMIT and self.state is State.INFLIGHT:
            return f"{self.requested}.inflight"
        return f"{self.requested}.{self.action}.{self.state.lower()}"

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED


def parse_instant(instant: str) -> datetime | None:
    """Return the time of an instant to the second, in the timeline's own zone; None if it is none.

    >>> parse_instant("20261121041500123")
    datetime.datetime(2026, 11, 21, 4, 15)
    >>> parse_instant("001") is None
    True
    """
    if len(instant) < SECOND_DIGITS:
        return None
    try:  # strptime takes longer to import than a plan takes to show
        return datetime.fromisoformat(f"{instant[:8]}T{instant[8:SECOND_DIGITS]}")
    except ValueError:
        return None
