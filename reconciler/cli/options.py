"""Arguments and options that several commands share, and commands whose options are one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

from reconciler import runtime
from reconciler.cli.completion import environment_names, label_values, table_names
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass

_Options = TypeVar("_Options")


def command(function: Callable[[_Options], int]) -> Callable[..., int]:
    """Return the command whose arguments and options are the fields of the function's parameter.

    The parameter is a dataclass. A field that is a dataclass itself stands for its own fields.
    """
    hints = get_type_hints(function)
    options = next(hint for name, hint in hints.items() if name != "return")

    def run(**values: Any) -> int:
        return function(_build_options(options, values))

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = Signature(list(_list_parameters(options)))  # type: ignore[attr-defined]
    return run


def _list_parameters(options: Any) -> Iterator[Parameter]:
    hints = get_type_hints(options, include_extras=True)
    for option in fields(options):
        hint = hints[option.name]
        if is_dataclass(hint):
            yield from _list_parameters(hint)
        else:
            default = Parameter.empty if option.default is MISSING else option.default
            yield Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _build_options(options: Any, values: Mapping[str, Any]) -> Any:
    hints = get_type_hints(options)
    return options(
        **{
            name: _build_options(hint, values) if is_dataclass(hint) else values[name]
            for name, hint in hints.items()
        }
    )


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class PlanFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


class ShortFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class StatusFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    PROMETHEUS = "prometheus"
    HTML = "html"


Specs = Annotated[
    list[Path],
    typer.Argument(metavar="SPEC_OR_DIR", help="Spec files, or folders of spec files."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="Format of standard output.")]
PlanOutput = Annotated[PlanFormat, typer.Option("--format", help="Format of standard output.")]
ShortOutput = Annotated[ShortFormat, typer.Option("--format", help="Format of standard output.")]
StatusOutput = Annotated[StatusFormat, typer.Option("--format", help="Format of standard output.")]
Full = Annotated[bool, typer.Option("--full", help="Show every file, with its file id.")]
Now = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Plan as of this time, such as 2026-01-31T04:00:00+00:00 (default: now).",
    ),
]
#: waiting for a distant store overlaps; on a local disk threads only take turns, which costs time
TABLES_AT_ONCE: Final = 4
DEFAULT_PARALLELISM: Final = f"{TABLES_AT_ONCE}, or 1 if all are on a local disk"
Parallelism = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        metavar="N",
        min=1,
        help=f"Number of tables to read in parallel (default: {DEFAULT_PARALLELISM}).",
    ),
]
Env = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="Environment with the tables' locations: environments/NAME.yaml beside or above the "
        "specs, or a file.",
        autocompletion=environment_names,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectors:
    """The options that select tables, as given. A table must match all of them."""

    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="GLOB",
            help="Only tables whose name matches the glob; repeatable.",
            autocompletion=table_names,
        ),
    ] = None
    excluded: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="GLOB",
            help="Skip tables whose name matches the glob; repeatable.",
            autocompletion=table_names,
        ),
    ] = None
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            "-l",
            metavar="LABEL=VALUE",
            help="Only tables with this label; repeatable.",
            autocompletion=label_values,
        ),
    ] = None
    changed_since: Annotated[
        str | None,
        typer.Option(
            "--changed-since",
            metavar="REF",
            help="Only tables whose spec or policies changed since HEAD branched off from REF (a "
            "branch, tag or commit).",
        ),
    ] = None

    def arguments(self) -> tuple[str, ...]:
        """Return every selector with its value.

        >>> Selectors(names=["sales.*"], changed_since="main").arguments()
        ('--name sales.*', '--changed-since main')
        """
        options = {
            "--name": self.names,
            "--exclude": self.excluded,
            "-l": self.labels,
            "--changed-since": None if self.changed_since is None else [self.changed_since],
        }
        return tuple(
            f"{option} {value}" for option, values in options.items() for value in values or ()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """The options about the policies of specs, as given."""

    policies: Annotated[
        list[Path] | None,
        typer.Option(
            "--policies",
            metavar="FILE_OR_DIR",
            help="Also apply the policies in this file or folder; repeatable.",
        ),
    ] = None
    require_policies: Annotated[
        bool,
        typer.Option("--require-policies", help="Refuse specs of tables that no policy covers."),
    ] = False


class Executor(StrEnum):
    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Spark's master, None for its default, and its configuration.

    ``from_variables``: the settings of it that environment variables hold; no message and no
    command line repeats their values. ``executor``: whether the work is Spark's or this process's.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    from_variables: frozenset[str] = frozenset()
    executor: Executor = Executor.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """The options of commands that start Spark, as given."""

    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark's master (default: local[*])."),
    ] = None
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="KEY=VALUE", help="Setting of Spark; repeatable."),
    ] = None
    ship: Annotated[
        bool,
        typer.Option(
            "--ship",
            help="On a cluster, send the driver's Python packages to the workers.",
        ),
    ] = False


ExecutorOption = Annotated[
    Executor,
    typer.Option(
        "--executor",
        help="Where the work runs: auto (small work in this process, else on Spark), spark, or "
        "local (all of it in this process, without Java).",
    ),
]


def parse_now(text: str | None) -> datetime:
    """Return the time of ``--now``, or the current time if there is none.

    >>> parse_now("2026-01-31T04:00:00Z").isoformat()
    '2026-01-31T04:00:00+00:00'
    """
    if text is None:
        return runtime.now()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--now {text}: not a valid time; write it as 2026-01-31T04:00:00+00:00"
        ) from None
    if time.tzinfo is None:
        raise UsageError(f"--now {text}: no UTC offset; write it as 2026-01-31T04:00:00+00:00")
    return time
