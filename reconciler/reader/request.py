"""Turn user input into a read request: times, kind, columns; pure.

Source of the spellings: HoodieSqlCommonUtils.formatQueryInstant (``as.of.instant``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Final, get_args

from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import ReadKind, ReadRequest

KINDS: Final[tuple[str, ...]] = get_args(ReadKind)
_INSTANT: Final = re.compile(r"[0-9]{14}([0-9]{3})?")
_ZEROS: Final = re.compile("0+")
_OFFSET: Final = re.compile(r"(Z|[+-][0-9]{2}:?[0-9]{2})$")
_SECONDS: Final = re.compile(r"[T ][0-9]{2}:?[0-9]{2}:?[0-9]{2}(Z|[+-].*)?$")
_FORMS: Final = "20260131040000000, 2026-01-31, 2026-01-31 04:00:00 or 2026-01-31 04:00:00.000"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArguments:
    """A read as the user gave it, not yet checked; options that are not given are None."""

    kind: str = "snapshot"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    columns: Sequence[str] | None = None

    @property
    def needs_zone(self) -> bool:
        """True if a time has an offset."""
        return any(_OFFSET.search(text) for text in self._times if "T" in text or ":" in text)

    @property
    def _times(self) -> tuple[str, ...]:
        return tuple(text for text in (self.as_of, self.begin, self.end) if text is not None)

    def to_request(self, zone: tzinfo | None = None) -> ReadRequest:
        """Check the arguments and return the request.

        ``zone``: the zone of the timeline's instants, None if only its writers know it. Raises
        UsageError for contradictions and for invalid times.
        """
        kind = _parse_kind(self.kind)
        if kind == "incremental":
            self._check_incremental()
        elif self.begin is not None or self.end is not None:
            raise UsageError("begin and end need kind incremental")
        if self.columns is not None and not self.columns:
            raise UsageError("columns: name at least one")
        times = [
            None if text is None else parse_instant(text, zone, option)
            for text, option in ((self.as_of, "as of"), (self.begin, "begin"), (self.end, "end"))
        ]
        as_of, begin, end = times
        if begin is not None and end is not None and begin > end:
            raise UsageError(f"begin {begin} is after its end {end}")
        columns = None if self.columns is None else tuple(self.columns)
        if columns is not None and len(set(columns)) != len(columns):
            raise UsageError(f"columns: {_find_repeated(columns)} is named twice")
        return ReadRequest(kind=kind, as_of=as_of, begin=begin, end=end, columns=columns)

    def _check_incremental(self) -> None:
        if self.begin is None:
            raise UsageError(
                "an incremental read needs begin: the instant it starts after (000 for all writes)"
            )
        if self.as_of is not None:
            raise UsageError("an incremental read cannot have as of; its end limits it")


def _parse_kind(text: str) -> ReadKind:
    for kind in get_args(ReadKind):
        if text == kind:
            return kind  # type: ignore[no-any-return]
    raise UsageError(f"kind {text!r}: must be one of {', '.join(KINDS)}")


def _find_repeated(names: Sequence[str]) -> str:
    return next(name for at, name in enumerate(names) if name in names[:at])


def parse_instant(text: str, zone: tzinfo | None, option: str) -> str:
    """Return a time as an instant of a timeline whose instants are in a zone.

    Times without an offset are already in that zone; None: it is unknown. A second without a
    fraction becomes its last millisecond, as in Hudi (HoodieInstantTimeGenerator,
    DEFAULT_MILLIS_EXT), so that the writes of that second are included.

    >>> parse_instant("2026-01-31 04:00:00", None, "as of")
    '20260131040000999'
    >>> from datetime import UTC
    >>> parse_instant("2026-01-31T04:00:00+02:00", UTC, "as of")
    '20260131020000999'
    """
    if _INSTANT.fullmatch(text) or _ZEROS.fullmatch(text):
        return text
    try:
        if text[:1] not in "12" or len(text) < len("2026-01-31") or "W" in text:
            raise ValueError(text)  # noqa: TRY301 (other spellings of ISO 8601)
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r}: not a valid instant or time; write {_FORMS}"
        ) from None
    if time.tzinfo is not None:
        if zone is None:
            raise UsageError(
                f"{option} {text!r}: the table does not declare the zone of its timeline; write "
                "the time as the timeline shows it, without an offset"
            )
        time = time.astimezone(zone)
    millis = 999 if _SECONDS.search(text) else time.microsecond // 1000
    return f"{time:%Y%m%d%H%M%S}{millis:03}"
