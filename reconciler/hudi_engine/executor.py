"""What real Hudi, where it is on Spark's class path, is asked to do: execute a pending plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
from reconciler.storage.api import StorageRef


class HudiExecutor(Protocol):
    """A Hudi bundle in the JVM of a Spark driver. Its own messages come as ReconcilerError."""

    def read_version(self) -> str:
        """The bundle's; raises ReconcilerError, with how to add one, where there is none."""

    def clean(self, ref: StorageRef, instant: str, options: Mapping[str, str]) -> None:
        """Execute the pending clean of that instant and complete it.

        Hudi executes every pending clean of a table: there must be no other one.
        """

    def cluster(
        self, ref: StorageRef, instant: str, options: Mapping[str, str], *, outputs: int
    ) -> None:
        """Execute the pending clustering of that instant and complete it.

        ``outputs``: the most files that one of its groups is to become. When this is interrupted
        Hudi has ended; raises PartialError where it goes on all the same.
        """

    def tally_groups(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup]
    ) -> list[Tally]:
        """Rows and keys of every group, read by us."""
