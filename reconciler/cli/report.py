"""``reconciler report``: write HTML pages about all tables, one page each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.environment import find_environment_name
from reconciler.cli.options import (
    Env,
    Now,
    Parallelism,
    PolicyOptions,
    Selectors,
    ShortFormat,
    ShortOutput,
    Specs,
    command,
    parse_now,
)
from reconciler.cli.terminal import print_result
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.cli.html_pages import WrittenPage


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of the command, as given."""

    specs: Specs
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Write the pages to this folder, made if missing."
        ),
    ]
    format: ShortOutput = ShortFormat.TEXT
    now: Now = None
    selectors: Selectors
    guards: PolicyOptions
    parallelism: Parallelism = None
    env: Env = None


@command
def report(options: ReportOptions) -> int:
    """Write HTML pages: index.html with all tables, and a page for each. Changes no table.

    The pages need no server and no network. Exits with 1 if a table cannot be read, else with 0.
    """
    from reconciler.cli.html_pages import check_report_folder, write_report  # noqa: PLC0415
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    time, folder = parse_now(options.now), options.output
    check_report_folder(folder)
    chosen = select_specs(options.specs, options.selectors, options.env, guards=options.guards)
    pages = write_report(
        chosen,
        time,
        folder,
        parallelism=options.parallelism,
        environment=find_environment_name(options.env),
    )
    print_result(_render(folder, pages, options.format))
    return 1 if any(page.error is not None for page in pages) else 0


def _render(folder: Path, pages: tuple[WrittenPage, ...], format: ShortFormat) -> str | bytes:  # noqa: A002 (the option's name)
    index = folder / "index.html"
    if format is ShortFormat.JSON:
        from reconciler import canonical_json  # noqa: PLC0415

        tables = canonical_json.to_document(pages)
        document = {"format": 1, "index": str(index), "tables": tables}
        return canonical_json.to_bytes(document) + b"\n"
    lines = [
        f"! {words.escape_text(page.name)}: {words.escape_text(page.error)}"
        for page in pages
        if page.error is not None
    ]
    count = words.format_count(len(pages), "table")
    lines.append(f"Report on {count}: {words.escape_text(str(index))}")
    return "\n".join(lines) + "\n"
