"""Keep each comparison of a job as soon as it is measured, so that a stopped job can go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, decode_figures
from tests.bench.run_log import RunLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What some systems measured in their turns.

    ``date``: when it began, ISO 8601 in UTC; ``seconds``: how long it took. ``failed``: the systems
    that were left out.
    """

    systems: tuple[str, ...]
    turns: int
    date: str
    seconds: float
    log: RunLog
    figures: tuple[Figure, ...]
    failed: tuple[str, ...] = ()


@dataclass(slots=True)
class KeptComparisons:
    """The comparisons of one job, in their order, in a file; None keeps nothing.

    ``conditions``: what a stopped run must have had in common with this one, or it is measured
    again: the machine and the versions, which say which code that was. ``is_current``: returns
    whether that is still the code.
    """

    file: Path | None = None
    conditions: object = None
    is_current: Callable[[], bool] = lambda: True
    made: list[Comparison] = field(default_factory=list)
    earlier_seconds: float = 0.0
    _earlier: list[Comparison] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.file is not None and self.file.is_file():
            self._earlier = _load(self.file, self.conditions)

    @property
    def first_date(self) -> str | None:
        """Return when the oldest comparison began."""
        return min((one.date for one in self.made), default=None)

    def take_next(self, systems: Sequence[str], turns: int) -> Comparison | None:
        """Return the next comparison if a stopped run has made it with all systems."""
        number = len(self.made)
        found = self._earlier[number] if number < len(self._earlier) else None
        if found is None or found.systems != tuple(systems) or found.turns < turns or found.failed:
            return None
        self.made.append(found)
        self.earlier_seconds += found.seconds
        return found

    def keep(self, comparison: Comparison) -> None:
        """Write the next comparison beside what is kept already, if it is of the same code."""
        self.made.append(comparison)
        if self.file is None or not self.is_current():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        half = self.file.with_suffix(".half")
        made = [*self.made, *self._earlier[len(self.made) :]]
        kept = {"conditions": self.conditions, "made": [asdict(one) for one in made]}
        half.write_text(json.dumps(kept) + "\n")
        half.replace(self.file)

    def remove(self) -> None:
        """Forget all: the job has ended."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def _load(file: Path, conditions: object) -> list[Comparison]:
    """Return the comparisons of a file; none if they are of other conditions."""
    try:
        kept = json.loads(file.read_bytes())
        if kept["conditions"] != json.loads(json.dumps(conditions)):
            return []
        return [_decode(one) for one in kept["made"]]
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"{file} has no comparisons ({error}): remove it, or use --fresh"
        ) from None


def _decode(found: dict[str, Any]) -> Comparison:
    return Comparison(
        systems=tuple(found["systems"]),
        turns=found["turns"],
        date=found["date"],
        failed=tuple(found["failed"]),
        seconds=found["seconds"],
        log=RunLog(**found["log"]),
        figures=decode_figures(found["figures"]),
    )
