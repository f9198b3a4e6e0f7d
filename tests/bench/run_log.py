"""What a run of a bench says of its machine and of itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class RunLog:
    """What a job's run has to say beside its figures.

    ``busy``: before each turn, the share of all processors that other processes used.
    ``load``: the load average of a minute before each turn, by processor.
    ``notes``: what a reader of the figures has to know, such as a peer that failed.
    """

    busy: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, other: RunLog) -> None:
        """Add what another log says."""
        self.busy += other.busy
        self.load += other.load
        self.notes += other.notes
