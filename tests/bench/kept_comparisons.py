"""Keep each comparison of a job as soon as it is measured, so that a stopped job can go on."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, decode_figures
from tests.bench.run_log import RunLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What some systems measured in their turns; ``seconds``: how long that took."""

    systems: tuple[str, ...]
    turns: int
    seconds: float
    log: RunLog
    figures: tuple[Figure, ...]


@dataclass(slots=True)
class KeptComparisons:
    """The comparisons of one job, in their order, in a file; None keeps nothing.

    ``conditions``: what a stopped run must have had in common with this one, or it is measured
    again: the machine and the versions.
    """

    file: Path | None = None
    conditions: object = None
    made: list[Comparison] = field(default_factory=list)
    _earlier: list[Comparison] = field(default_factory=list)
    _begun: float = 0.0

    def __post_init__(self) -> None:
        if self.file is not None and self.file.is_file():
            self._earlier = _load(self.file, self.conditions)

    @property
    def earlier_seconds(self) -> float:
        """Return how long those comparisons took that a stopped run has made."""
        return sum(one.seconds for one in self._earlier[: len(self.made)])

    def find_next(self, systems: Sequence[str], turns: int) -> Comparison | None:
        """Return the next comparison if a stopped run has made it; else its time begins."""
        number = len(self.made)
        if number < len(self._earlier):
            found = self._earlier[number]
            if found.systems == tuple(systems) and found.turns >= turns:
                self.made.append(found)
                return found
        self._earlier = self._earlier[:number]
        self._begun = time.monotonic()
        return None

    def keep(
        self, systems: Sequence[str], turns: int, figures: tuple[Figure, ...], log: RunLog
    ) -> None:
        """Write what was measured since ``find_next``."""
        seconds = time.monotonic() - self._begun
        self.made.append(
            Comparison(
                systems=tuple(systems), turns=turns, seconds=seconds, log=log, figures=figures
            )
        )
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        half = self.file.with_suffix(".half")
        kept = {"conditions": self.conditions, "made": [asdict(one) for one in self.made]}
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
        seconds=found["seconds"],
        log=RunLog(**found["log"]),
        figures=decode_figures(found["figures"]),
    )
