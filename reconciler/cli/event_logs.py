"""``--from-event-logs``: read Spark's event logs for the queries of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconciler import runtime
from reconciler.cli.terminal import show_progress
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.event_logs.workload import KnownTable, Workload
    from reconciler.spec.model import Option

HELP: Final = (
    "Folder, or URL, of Spark's event logs (spark.eventLog.dir), or one log: what was asked "
    "of the tables becomes their queries."
)
#: as in ``event_logs.proposal``, which loads too much for --help
DEFAULT_LIMIT: Final = 10
LIMIT_HELP: Final = "Number of queries to propose for a table."


def read_event_logs(
    location: str, known: Iterable[KnownTable], options: Mapping[str, Option]
) -> Workload:
    """Read the logs at a location, with a progress bar. Raises StorageError if there are none.

    ``options``: of the store's client.
    """
    from pathlib import Path  # noqa: PLC0415 (only here)

    from reconciler.event_logs.reader import find_logs, read_workload  # noqa: PLC0415
    from reconciler.spec.locations import resolve_location  # noqa: PLC0415

    if not location.strip():
        raise UsageError("--from-event-logs: the location is empty; name a folder of event logs")
    found = find_logs(
        resolve_location(location, str(Path.cwd())),
        lambda place: runtime.open_storage(place, options),
    )
    with show_progress("reading event logs", len(found.logs), "logs") as report:
        return read_workload(found, known, lambda: report(1, ""))
