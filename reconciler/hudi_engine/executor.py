"""The interface of a Hudi bundle that executes pending plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
    from reconciler.storage.api import StorageRef


class HudiExecutor(Protocol):
    """A Hudi bundle in the JVM of a Spark driver; its own errors are raised as ReconcilerError."""

    def read_version(self) -> str:
        """Return the bundle's version; raises ReconcilerError that says how to add one."""

    def has_class(self, name: str) -> bool:
        """Return whether Spark's class path has a Java class."""

    def read_spark_version(self) -> tuple[int, int]:
        """Return the first two numbers of the Spark that the bundle runs in."""

    def clean(self, ref: StorageRef, instant: str, options: Mapping[str, str]) -> None:
        """Execute the pending clean of an instant and complete it.

        Hudi executes every pending clean of a table, so there must be no other one.
        """

    def cluster(
        self, ref: StorageRef, instant: str, options: Mapping[str, str], *, outputs: int
    ) -> None:
        """Execute the pending clustering of an instant and complete it.

        ``outputs``: the largest number of files that one of its groups becomes. After an
        interruption Hudi has stopped; raises PartialError if it has not.
        """

    def tally_groups(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup]
    ) -> list[Tally]:
        """Count rows and keys of every group, read by this package."""
