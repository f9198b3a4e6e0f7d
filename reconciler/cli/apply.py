"""``reconciler apply``: execute a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from reconciler import runtime
from reconciler.cli.environment import find_spark_options
from reconciler.cli.files import find_plan_file, read_plan
from reconciler.cli.options import (
    DEFAULT_PARALLELISM,
    Env,
    Executor,
    Format,
    Now,
    OutputFormat,
    PlanFormat,
    PolicyOptions,
    Selectors,
    SparkOptions,
    command,
    parse_now,
)
from reconciler.cli.plan import make_plan, render_plan
from reconciler.cli.request_stats import Stats, report_requests
from reconciler.cli.spark import parse_spark_settings
from reconciler.cli.terminal import ask_yes_no, log_message, print_result, require_terminal
from reconciler.cli.webhook import Webhook, open_webhook
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.plans.plan import Plan
    from reconciler.spec.model import TableSpec


_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")


class ExecutorName(StrEnum):
    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"
    NATIVE = "native"
    HUDI = "hudi"

    @property
    def place(self) -> Executor:
        """Where our own code runs; Hudi runs on Spark anyway."""
        match self:
            case ExecutorName.SPARK:
                return Executor.SPARK
            case ExecutorName.LOCAL:
                return Executor.LOCAL
            case ExecutorName.AUTO | ExecutorName.NATIVE | ExecutorName.HUDI:
                return Executor.AUTO
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """The options of the command, as given."""

    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLAN|SPEC_OR_DIR",
            help="Reviewed plan (- for standard input), or specs to plan and apply at once.",
        ),
    ]
    specs: Annotated[
        list[Path] | None,
        typer.Option(
            "--specs",
            metavar="SPEC_OR_DIR",
            help="Skip tables whose spec or path changed since the review; repeatable.",
        ),
    ] = None
    digest: Annotated[
        str | None,
        typer.Option("--digest", metavar="sha256:...", help="Apply only a plan with this digest."),
    ] = None
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="With specs, apply without asking.")
    ] = False
    now: Now = None
    executor: Annotated[
        ExecutorName,
        typer.Option(
            "--executor",
            help="Where the work runs: auto (small work in this process, else on Spark), spark, "
            "local (all of it in this process, without Java), or hudi (the Hudi on Spark's class "
            "path). native is auto.",
        ),
    ] = ExecutorName.AUTO
    parallelism: Annotated[
        int | None,
        typer.Option(
            "--parallelism",
            metavar="N",
            min=1,
            help="Number of tables to apply in parallel (default: 1; with specs, while planning "
            f"{DEFAULT_PARALLELISM}).",
        ),
    ] = None
    spark: SparkOptions
    format: OutputFormat = Format.TEXT
    selectors: Selectors
    guards: PolicyOptions
    env: Env = None
    audit: Annotated[
        Path | None,
        typer.Option("--audit", metavar="FILE", help="Append a JSON line per table to this file."),
    ] = None
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor",
            metavar="NAME",
            help="User recorded as running the apply (default: the user of CI, or yours).",
        ),
    ] = None
    spec_commit: Annotated[
        str | None,
        typer.Option(
            "--spec-commit",
            metavar="SHA",
            help="Commit of the specs to record (default: from git or CI).",
        ),
    ] = None
    webhook: Webhook = None
    stats: Stats = False


@command
def apply(options: ApplyOptions) -> int:
    """Execute a reviewed plan, and nothing beyond it.

    If a table changed since the review, the parts that no longer hold are skipped and reported.
    Passing a plan file is the approval. Specs are planned first, and you are asked to approve.
    """
    with report_requests(is_wanted=options.stats):
        return _apply(options)


def _apply(options: ApplyOptions) -> int:
    paths, specs, env = options.paths, options.specs, options.env
    hook = open_webhook(options.webhook, "apply", env)
    spark = parse_spark_settings(options.spark, options.executor.place)
    time = None if options.now is None else parse_now(options.now)
    file = _find_plan_file(options)

    from reconciler.cli.audit import AuditFile, find_origin  # noqa: PLC0415 (slow to import)
    from reconciler.cli.run_apply import ApplyRun, render_result, run_apply  # noqa: PLC0415 (slow)
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    origin = find_origin(options.actor, options.spec_commit, specs if file else paths, env)
    audit = None if options.audit is None else AuditFile(options.audit)
    if file is None:
        selected = select_specs(paths, options.selectors, env, guards=options.guards)
        spark = find_spark_options(env, paths, spark, [spec.path for spec in selected.tables])
        plan = make_plan(selected, time or runtime.now(), parallelism=options.parallelism)
        if not _ask_approval(plan, auto_approve=options.auto_approve):
            return 0
        current: Sequence[TableSpec] | None = selected.tables
    else:
        plan = read_plan(file)
        current = _load_current_specs(options, plan)
        places = [table.path for table in plan.tables]
        spark = find_spark_options(env, specs or [Path()], spark, places)
    result = run_apply(
        plan,
        ApplyRun(
            now=time,
            specs=current,
            digest=options.digest,
            parallelism=options.parallelism or 1,
            spark=spark,
            origin=origin,
            audit=audit,
            by_hudi=options.executor is ExecutorName.HUDI,
        ),
    )
    print_result(render_result(result, options.format, origin))
    hook.report_result(result)
    return result.exit_code


def _load_current_specs(options: ApplyOptions, plan: Plan) -> tuple[TableSpec, ...] | None:
    """Return the specs of ``--specs``, None without it; warnings are only about planned tables."""
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    if not options.specs:
        return None
    names = {table.name for table in plan.tables}
    return select_specs(
        options.specs,
        environment=options.env,
        guards=options.guards,
        works_on=lambda spec: spec.name in names,
    ).tables


def _find_plan_file(options: ApplyOptions) -> Path | None:
    """Return the plan file, None for specs; UsageError for options that do not fit."""
    digest, file = options.digest, find_plan_file(options.paths)
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise UsageError(f"--digest {digest}: expected the full digest printed by plan or show")
    if file is None and options.specs:
        raise UsageError("--specs: needs a plan file, but the arguments are specs")
    guards = options.guards
    if file is not None and not options.specs and (guards.policies or guards.require_policies):
        option = "--policies" if guards.policies else "--require-policies"
        raise UsageError(f"{option}: with a plan file, give also --specs, which policies are for")
    if file is not None and (given := options.selectors.arguments()):
        option = given[0].partition(" ")[0]
        raise UsageError(
            f"{option}: a plan is applied as reviewed; use selectors with `reconciler plan`"
        )
    return file


def _ask_approval(plan: Plan, *, auto_approve: bool) -> bool:
    """Return whether an unreviewed plan may run. If a person must be asked, show it first."""
    from reconciler.plans.refused_steps import list_applied_steps  # noqa: PLC0415 (numpy)

    changing = [table.name for table in plan.tables if list_applied_steps(table)]
    if auto_approve or not changing:
        return True
    instead = "use --auto-approve, or review a plan: `reconciler plan ... -o plan.json`"
    require_terminal(instead)
    log_message(str(render_plan(plan, PlanFormat.TEXT, full=False)))
    if ask_yes_no(words.escape_text(f"Apply this to {', '.join(changing)}?"), instead):
        return True
    log_message("nothing was applied")
    return False
