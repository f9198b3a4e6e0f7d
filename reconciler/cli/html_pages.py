"""Make the HTML pages of ``plan``, ``status`` and ``report``."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli.files import replace_file
from reconciler.cli.table_work import work_on_tables
from reconciler.errors import StorageError
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconciler.cli.selection import SelectedTables
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.plans.plan import Plan
    from reconciler.render.html.model import FleetRow
    from reconciler.status.model import TableStatus
    from reconciler.status.table_survey import TableSurvey

_INDEX: Final = "index.html"
#: bytes in which a page of ours says so
_HEAD: Final = 2048
_OURS: Final = b'<meta name="generator" content="reconciler">'


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPage:
    """The page of a table; ``page``: its path relative to the first page."""

    name: str
    page: str
    error: str | None


def make_plan_page(
    selected: SelectedTables,
    now: datetime,
    *,
    parallelism: int | None,
    insert: NextInsert | None,
    environment: str | None,
    describe: Callable[[Any], str],
) -> tuple[Plan, bytes]:
    """Plan the selected tables, and return the plan with its page."""
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.plans.plan import Plan  # noqa: PLC0415
    from reconciler.render.html import page_names, pages  # noqa: PLC0415 (slow to import)

    anchors = page_names.name_anchors(spec.name for spec in selected.tables)

    def show(survey: TableSurvey) -> Any:
        anchor = anchors[survey.spec.name]
        row = pages.build_surveyed_row(survey, f"#{anchor}")
        return survey.plan, pages.build_surveyed_page(survey, anchor), row

    options: Any = {"now": now, "parallelism": parallelism, "insert": insert}
    made = _survey(selected, "planning", show, describe=describe, **options)
    plan = Plan(
        created_at=now.isoformat(),
        tool=runtime.tool_name(),
        tables=tuple(plan for plan, _, _ in made),
        selection=selected.selection,
    )
    shown, rows = [page for _, page, _ in made], [row for _, _, row in made]
    return plan, pages.render_plan_page(plan, shown, rows, environment=environment)


def make_status_page(
    selected: SelectedTables, now: datetime, *, parallelism: int | None, environment: str | None
) -> tuple[tuple[TableStatus, ...], bytes]:
    """Read the selected tables, and return their status with its page, which lists no files."""
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.render.html import page_names, pages  # noqa: PLC0415 (slow to import)

    anchors = page_names.name_anchors(spec.name for spec in selected.tables)

    def show(survey: TableSurvey) -> Any:
        anchor = anchors[survey.spec.name]
        row = pages.build_surveyed_row(survey, f"#{anchor}")
        return survey.status, pages.build_surveyed_page(survey, anchor, with_files=False), row

    options: Any = {"now": now, "parallelism": parallelism, "purpose": "status"}
    made = _survey(selected, "reading", show, **options)
    shown, rows = [page for _, page, _ in made], [row for _, _, row in made]
    page = pages.render_status_page(
        shown, rows, at=now, tool=runtime.tool_name(), environment=environment
    )
    return tuple(status for status, _, _ in made), page


def write_report(
    selected: SelectedTables,
    now: datetime,
    folder: Path,
    *,
    parallelism: int | None,
    environment: str | None,
) -> tuple[WrittenPage, ...]:
    """Write a page for each table as soon as it is read, and the first page last."""
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.render.html import page_names, pages  # noqa: PLC0415 (slow to import)

    names = page_names.name_pages(spec.name for spec in selected.tables)
    tool = runtime.tool_name()

    def show(survey: TableSurvey) -> Any:
        name = names[survey.spec.name]
        href = f"{pages.TABLES_FOLDER}/{name}.html"
        page = pages.build_surveyed_page(survey, name)
        replace_file(folder / href, pages.render_report_table(page, at=now, tool=tool))
        written = WrittenPage(name=survey.spec.name, page=href, error=survey.plan.error)
        return written, pages.build_surveyed_row(survey, href)

    _make_folder(folder / pages.TABLES_FOLDER)
    options: Any = {"now": now, "parallelism": parallelism}
    made = _survey(selected, "reading", show, **options)
    rows: list[FleetRow] = [row for _, row in made]
    index = pages.render_report_index(rows, at=now, tool=tool, environment=environment)
    replace_file(folder / _INDEX, index)
    return tuple(written for written, _ in made)


def check_report_folder(folder: Path) -> None:
    """Raise StorageError if a report cannot be written there, or if other pages are there."""
    if folder.exists() and not folder.is_dir():
        raise StorageError(str(folder), "is a file; name a folder for the report")
    index = folder / _INDEX
    try:
        with index.open("rb") as file:
            is_ours = _OURS in file.read(_HEAD)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(str(index), error.strerror or str(error)) from None
    if not is_ours:
        raise StorageError(str(index), "is no report of reconciler; name another folder")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(str(folder), error.strerror or str(error)) from None


def _survey(
    selected: SelectedTables, what: str, show: Callable[[TableSurvey], Any], **options: Any
) -> Any:
    from reconciler import api  # noqa: PLC0415 (slow to import)

    work = partial(api.survey, use=show)
    return work_on_tables(work, selected.tables, what, **options)
