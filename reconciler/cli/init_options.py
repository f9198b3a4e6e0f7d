"""The options of ``reconciler init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.event_logs import DEFAULT_LIMIT, HELP, LIMIT_HELP
from reconciler.cli.options import Parallelism
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """The options of the command, as given."""

    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Existing table, folder or URL to search for tables, or glob "
            "('s3://lake/*/orders*'), or tables of a catalog ('hive://host:9083/db*', "
            "'glue://account/db.orders*'); repeatable.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write to this new file; for several tables, to one file each in this folder.",
        ),
    ] = None
    event_logs: Annotated[
        str | None, typer.Option("--from-event-logs", metavar="DIR", help=HELP)
    ] = None
    max_queries: Annotated[
        int, typer.Option("--max-queries", metavar="N", min=1, help=LIMIT_HELP)
    ] = DEFAULT_LIMIT
    depth: Annotated[
        int | None,
        typer.Option("--depth", metavar="N", min=0, help="Search at most N folders below a PATH."),
    ] = None
    is_relative: Annotated[
        bool, typer.Option("--relative", help="Write local paths relative to the spec file.")
    ] = False
    environment: Annotated[
        str | None,
        typer.Option(
            "--env",
            metavar="NAME",
            help="Write locations to environments/NAME.yaml beside or above the specs (or to a "
            "file), not to every spec.",
        ),
    ] = None
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="Time zone of the writers, such as Europe/Berlin, for tables that do not record "
            "it.",
        ),
    ] = None
    parallelism: Parallelism = None
