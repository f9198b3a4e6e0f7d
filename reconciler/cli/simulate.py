"""``reconciler simulate``: what a table would keep and read with other declarations."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from reconciler import units
from reconciler.cli.files import check_output_file, replace_file
from reconciler.cli.options import (
    Env,
    Format,
    Now,
    OutputFormat,
    Parallelism,
    PolicyOptions,
    Selectors,
    Specs,
    command,
    parse_now,
)
from reconciler.cli.table_work import work_on_tables
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import UsageError, did_you_mean
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from reconciler.cli.selection import SelectedTables
    from reconciler.planners.layout_simulation import LayoutChoice
    from reconciler.planners.retention_simulation import RetentionChoice
    from reconciler.status.table_simulation import SimulationRequest, TableSimulation

#: values of one retention option, ranges counted as their values
_MAX_VALUES: Final = 100
_MAX_KEPT: Final = 1_000_000
_COUNTS: Final = ("commits", "hours", "fileVersions")
_NUMBER: Final = re.compile(r"[0-9]{1,7}")
_RANGE: Final = re.compile(r"([0-9]{1,7})\.\.([0-9]{1,7})")
_AN_HOUR: Final = 3600
#: layouts of one run; each takes about a second
_MAX_LAYOUTS: Final = 50
_LEAST_TARGET: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """The options of the command, as given."""

    specs: Specs
    retention: Annotated[
        list[str] | None,
        typer.Option(
            "--retention",
            metavar="COUNT=VALUES",
            help="Retentions to compare, such as commits=2,5,10, commits=2..20, hours=24,7d or "
            "fileVersions=1,3; repeatable.",
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="COLUMNS",
            help="Clustering columns to try for the declared queries, such as id,order_ts; "
            "repeatable.",
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="SIZES", help="Sizes of files to try, such as 64MiB,128MiB."
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write the result (JSON) to this file."
        ),
    ] = None
    format: OutputFormat = Format.TEXT
    now: Now = None
    selectors: Selectors
    guards: PolicyOptions
    parallelism: Parallelism = None
    env: Env = None


@command
def simulate(options: SimulateOptions) -> int:
    """Show what tables would keep with other retentions, and read in other layouts.

    Plans every value for the files that are there. Exits with 1 if a table cannot be read, else
    with 0. Changes no table.
    """
    time, request = parse_now(options.now), _build_request(options)
    if options.output is not None:
        check_output_file(options.output, "the result")

    from reconciler import api  # noqa: PLC0415 (slow to import)
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    chosen = select_specs(options.specs, options.selectors, options.env, guards=options.guards)
    tables = work_on_tables(
        api.simulate,
        chosen.tables,
        "simulating",
        request=request,
        now=time,
        parallelism=options.parallelism,
    )
    render = _build_renderer(tables, chosen, time)
    if options.output is not None:
        replace_file(options.output, render(Format.JSON))
    print_result(render(options.format))
    return 1 if any(table.error is not None for table in tables) else 0


def _build_request(options: SimulateOptions) -> SimulationRequest:
    from reconciler.status.table_simulation import SimulationRequest  # noqa: PLC0415 (pyarrow)

    request = SimulationRequest(
        retentions=tuple(_parse_retentions(options.retention or ())),
        layouts=tuple(_combine_layouts(options.columns or (), options.target)),
    )
    if not request.retentions and not request.layouts:
        raise UsageError(
            "nothing to simulate: give --retention commits=2,5,10, --columns or --target"
        )
    return request


def _combine_layouts(columns: Sequence[str], targets: str | None) -> Iterator[LayoutChoice]:
    """Yield every pair of columns and size; UsageError if a text is none of them."""
    from reconciler.planners.layout_simulation import LayoutChoice  # noqa: PLC0415 (pyarrow)

    sets: list[tuple[str, ...] | None] = [_parse_columns(text) for text in columns]
    texts = [] if targets is None else targets.split(",")
    sizes: list[int | None] = [_parse_target(targets or "", text) for text in texts]
    if not sets and not sizes:
        return
    layouts = list(product(sets or [None], sizes or [None]))
    if len(layouts) > _MAX_LAYOUTS:
        raise UsageError(f"more than {_MAX_LAYOUTS} layouts; give fewer --columns or --target")
    for names, size in layouts:
        yield LayoutChoice(columns=names, target=size)


def _parse_columns(text: str) -> tuple[str, ...]:
    """Return the columns of an option.

    >>> _parse_columns("customer_id, order_ts")
    ('customer_id', 'order_ts')
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"--columns {text}: a name is empty; write customer_id,order_ts")
    return names


def _parse_target(text: str, size: str) -> int:
    """Return the bytes of a size.

    >>> _parse_target("1MiB,2MiB", "2MiB")
    2097152
    """
    try:
        target = units.parse_size(size.strip())
    except ValueError as error:
        raise UsageError(f"--target {text}: {error}") from None
    if target < _LEAST_TARGET:
        least = units.format_size(_LEAST_TARGET)
        raise UsageError(f"--target {text}: {size.strip()} is less than {least}")
    return target


def _parse_retentions(texts: Sequence[str]) -> Iterator[RetentionChoice]:
    """Yield the retentions of all options; UsageError if a text is none."""
    from reconciler.planners.retention_simulation import RetentionChoice  # noqa: PLC0415 (pyarrow)
    from reconciler.spec.rules import POLICY_BY_COUNT  # noqa: PLC0415 (the schema)

    for text in texts:
        count, equals, values = text.partition("=")
        if count not in _COUNTS:
            close = did_you_mean(count, _COUNTS)
            hint = f"did you mean {close!r}?" if close and equals else "write commits=2,5,10"
            raise UsageError(
                f"--retention {text}: starts with none of {', '.join(_COUNTS)}; {hint}"
            )
        numbers = [number for value in values.split(",") for number in _parse_values(text, value)]
        if len(numbers) > _MAX_VALUES:
            raise UsageError(f"--retention {text}: more than {_MAX_VALUES} values; give fewer")
        for number in numbers:
            yield RetentionChoice(policy=POLICY_BY_COUNT[count], keep=number)


def _parse_values(text: str, value: str) -> list[int]:
    """Return the numbers of a value: a number, a range, or a duration for hours.

    >>> _parse_values("commits=2..4", "2..4"), _parse_values("hours=7d", "7d")
    ([2, 3, 4], [168])
    """
    value = value.strip()
    if match := _RANGE.fullmatch(value):
        low, high = int(match[1]), int(match[2])
        numbers = range(low, min(high, low + _MAX_VALUES) + 1)
    elif _NUMBER.fullmatch(value):
        numbers = range(int(value), int(value) + 1)
    else:
        numbers = _parse_hours(value) if text.startswith("hours=") else range(0)
    if not numbers or not 1 <= numbers[0] <= _MAX_KEPT:
        raise UsageError(
            f"--retention {text}: {value!r} is no whole number from 1 to {_MAX_KEPT}, nor a range "
            "such as 2..20"
        )
    return list(numbers)


def _parse_hours(value: str) -> range:
    """Return the hours of a duration such as 7d; empty if they are not whole."""
    try:
        seconds = units.parse_duration(value)
    except ValueError:
        return range(0)
    hours, rest = divmod(seconds, _AN_HOUR)
    return range(0) if rest else range(hours, hours + 1)


def _build_renderer(
    tables: tuple[TableSimulation, ...], chosen: SelectedTables, now: datetime
) -> Callable[[Format], bytes]:
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.render import simulation  # noqa: PLC0415

    def render(format: Format) -> bytes:  # noqa: A002 (the option's name)
        match format:
            case Format.TEXT:
                text = simulation.simulation_text(
                    tables, find_terminal(), selection=chosen.selection
                )
                return text.encode(errors="backslashreplace")
            case Format.JSON:
                return simulation.simulation_json(
                    tables,
                    created_at=now.isoformat(),
                    tool=runtime.tool_name(),
                    selection=chosen.selection,
                )
            case Format.MARKDOWN:
                text = simulation.simulation_markdown(tables, selection=chosen.selection)
                return text.encode(errors="backslashreplace")
            case _:
                assert_never(format)

    return render
