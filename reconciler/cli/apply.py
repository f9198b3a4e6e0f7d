"""``reconciler apply``: execute a plan."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler import runtime
from reconciler.cli.environment import find_spark_options
from reconciler.cli.options import (
    TABLES_AT_ONCE,
    ChangedSince,
    Env,
    Excluded,
    Format,
    Labels,
    Names,
    Now,
    OutputFormat,
)
from reconciler.cli.parse_now import parse_now
from reconciler.cli.plan import make_plan, render_plan
from reconciler.cli.plan_files import find_plan_file, read_plan
from reconciler.cli.spark import parse_spark_settings
from reconciler.cli.terminal import ask_yes_no, log_message, print_result, require_terminal
from reconciler.cli.webhook import Webhook, open_webhook
from reconciler.errors import UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.plans.plan import Plan
    from reconciler.spec.model import TableSpec


_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")


class ExecutorName(StrEnum):
    NATIVE = "native"
    HUDI = "hudi"


def apply(  # noqa: PLR0913 (options of a command)
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLAN|SPEC_OR_DIR",
            help="Reviewed plan (- for standard input), or specs to plan and apply at once.",
        ),
    ],
    *,
    specs: Annotated[
        list[Path] | None,
        typer.Option(
            "--specs",
            metavar="SPEC_OR_DIR",
            help="Skip tables whose spec or path changed since the review; repeatable.",
        ),
    ] = None,
    digest: Annotated[
        str | None,
        typer.Option("--digest", metavar="sha256:...", help="Apply only a plan with this digest."),
    ] = None,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="With specs, apply without asking.")
    ] = False,
    now: Now = None,
    executor: Annotated[
        ExecutorName,
        typer.Option(
            "--executor",
            help="Execution engine: native, or hudi (the Hudi on Spark's class path).",
        ),
    ] = ExecutorName.NATIVE,
    parallelism: Annotated[
        int | None,
        typer.Option(
            "--parallelism",
            metavar="N",
            min=1,
            help="Number of tables to apply in parallel (default: 1; with specs, "
            f"{TABLES_AT_ONCE} while planning).",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark's master (default: local[*])."),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="KEY=VALUE", help="Setting of Spark; repeatable."),
    ] = None,
    format: OutputFormat = Format.TEXT,  # noqa: A002 (the option's name)
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    env: Env = None,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", metavar="FILE", help="Append a JSON line per table to this file."),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor",
            metavar="NAME",
            help="User recorded as running the apply (default: the user of CI, or yours).",
        ),
    ] = None,
    spec_commit: Annotated[
        str | None,
        typer.Option(
            "--spec-commit",
            metavar="SHA",
            help="Commit of the specs to record (default: from git or CI).",
        ),
    ] = None,
    webhook: Webhook = None,
) -> int:
    """Execute a reviewed plan, and nothing beyond it.

    If a table changed since the review, the parts that no longer hold are skipped and reported.
    Passing a plan file is the approval. Specs are planned first, and you are asked to approve.
    """
    hook = open_webhook(webhook, "apply", env)
    _check_digest(digest)
    settings: Mapping[str, str] = parse_spark_settings(spark_conf)
    time = None if now is None else parse_now(now)
    file = _find_plan_file(
        paths,
        specs,
        {"--name": name, "--exclude": exclude, "-l": label, "--changed-since": changed_since},
    )

    from reconciler.cli.audit import AuditFile, find_origin  # noqa: PLC0415 (slow to import)
    from reconciler.cli.run_apply import render_result, run_apply  # noqa: PLC0415 (slow to import)
    from reconciler.cli.selection import Selectors, select_specs  # noqa: PLC0415

    origin = find_origin(actor, spec_commit, specs if file else paths, env)
    journal = None if audit is None else AuditFile(audit)
    if file is None:
        selectors = Selectors(
            names=name, excluded=exclude, labels=label, changed_since=changed_since
        )
        selected = select_specs(paths, selectors, env)
        master, settings = find_spark_options(env, paths, master, settings)
        plan = make_plan(
            selected.tables,
            time or runtime.now(),
            selection=selected.selection,
            parallelism=parallelism or TABLES_AT_ONCE,
        )
        if not _ask_approval(plan, auto_approve=auto_approve):
            return 0
        current: tuple[TableSpec, ...] | None = selected.tables
    else:
        plan = read_plan(file)
        current = select_specs(specs, environment=env).tables if specs else None
        master, settings = find_spark_options(env, specs or [Path()], master, settings)
    result = run_apply(
        plan,
        now=time,
        specs=current,
        digest=digest,
        parallelism=parallelism or 1,
        master=master,
        settings=settings,
        origin=origin,
        audit=journal,
        by_hudi=executor is ExecutorName.HUDI,
    )
    print_result(render_result(result, format, origin))
    hook.report_result(result)
    return result.exit_code


def _check_digest(digest: str | None) -> None:
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise UsageError(f"--digest {digest}: expected the full digest printed by plan or show")


def _find_plan_file(
    paths: list[Path], specs: list[Path] | None, selectors: Mapping[str, object]
) -> Path | None:
    """Return the plan file, None for specs; UsageError for options that do not fit."""
    file = find_plan_file(paths)
    if file is None:
        _refuse_options({"--specs": specs}, "needs a plan file, but the arguments are specs")
    else:
        _refuse_options(
            selectors, "a plan is applied as reviewed; use selectors with `reconciler plan`"
        )
    return file


def _refuse_options(options: Mapping[str, object], reason: str) -> None:
    for option, value in options.items():
        if value:
            raise UsageError(f"{option}: {reason}")


def _ask_approval(plan: Plan, *, auto_approve: bool) -> bool:
    """Return whether an unreviewed plan may run. If a person must be asked, show it first."""
    changing = [table.name for table in plan.tables if table.has_changes and not table.refusals]
    if auto_approve or not changing:
        return True
    instead = "use --auto-approve, or review a plan: `reconciler plan ... -o plan.json`"
    require_terminal(instead)
    log_message(str(render_plan(plan, Format.TEXT, full=False)))
    if ask_yes_no(words.escape_text(f"Apply this to {', '.join(changing)}?"), instead):
        return True
    log_message("nothing was applied")
    return False
