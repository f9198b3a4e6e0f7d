"""The picture of a table that all of its planners share; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.hudi.files.view import FileView
    from reconciler.planners.known_statistics import KnownStatistics


@dataclass(frozen=True, eq=False)
class TablePicture:
    """The input of a table's planners: its spec, its state, the file view and the statistics.

    ``now``: the time of the plan, with a zone; None if nothing depends on it. ``expired``: the
    partitions past their retention, each with the reason. View and statistics are made once, when
    the first planner needs them.
    """

    spec: TableSpec
    state: TableState
    now: datetime | None = None
    expired: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def view(self) -> FileView:
        """Return the file slices of the table."""
        return self.state.view

    @property
    def file_sizes(self) -> FileSizes:
        """Return the declared file sizes, or the defaults."""
        return self.spec.files or FileSizes()

    @property
    def can_rewrite(self) -> bool:
        """Return whether a rewrite is planned: declared; for file sizes, with known past writes."""
        spec = self.spec
        is_known = spec.clustering is not None or self.state.clustering_facts is not None
        return spec.rewriting is not None and is_known

    @cached_property
    def statistics(self) -> KnownStatistics:
        """Return what is known of the rows and files of the table."""
        from reconciler.planners.known_statistics import (  # noqa: PLC0415 (few specs need them)
            collect_statistics,
        )

        return collect_statistics(self.file_sizes, self.state)
