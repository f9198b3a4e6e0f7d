"""Match what event logs asked to the tables of specs; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.event_logs.proposal import QueryProposal, propose_queries
from reconciler.event_logs.workload import KnownTable, ObservedTable, Workload
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.spec.model import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadReport:
    """What event logs asked of tables.

    ``proposals``: of each spec, in their order. ``others``: Hudi tables of the logs without a
    spec, the most read first.
    """

    workload: Workload
    proposals: tuple[QueryProposal, ...]
    others: tuple[ObservedTable, ...] = ()


def list_known_tables(specs: Sequence[TableSpec]) -> tuple[KnownTable, ...]:
    """Return the tables of specs, to be found in logs."""
    return tuple(
        KnownTable(
            location=spec.path, catalog_name=None if spec.catalog is None else spec.catalog.name
        )
        for spec in specs
    )


def report_workload(workload: Workload, specs: Sequence[TableSpec], limit: int) -> WorkloadReport:
    """Return the proposals for specs; ``workload`` was read for their tables.

    ``limit``: proposed queries of a table.
    """
    count = len(specs)
    pairs = zip(specs, workload.tables[:count], strict=True)
    others = sorted(
        (table for table in workload.tables[count:] if table.runs or table.incremental.runs),
        key=lambda table: (-table.bytes, -table.runs, table.location),
    )
    return WorkloadReport(
        workload=workload,
        proposals=tuple(
            propose_queries(table, spec.queries, workload.days, limit) for spec, table in pairs
        ),
        others=tuple(others),
    )
