"""``reconciler write``: write the rows of files into the table of a spec."""

from __future__ import annotations

from reconciler.cli.environment import find_spark_options
from reconciler.cli.options import Selectors, command
from reconciler.cli.spark import parse_spark_settings
from reconciler.cli.write_options import WriteOptions
from reconciler.errors import UsageError


@command
def write(options: WriteOptions) -> int:
    """Write rows into a table, all or none. The table is created if it does not exist.

    Small files are filled up to files.target of the spec. Needs no Hudi jar.
    """
    _check_guards(options)
    given = parse_spark_settings(options.spark, options.executor)
    reader_options = dict(_parse_option(text) for text in options.source_options or ())

    from reconciler.cli.run_write import write_files  # noqa: PLC0415 (slow)
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    selectors = Selectors(names=None if options.name is None else [options.name])
    specs = select_specs(
        [options.spec], selectors, environment=options.env, guards=options.guards
    ).tables
    if len(specs) != 1:
        raise UsageError(
            f"{options.spec}: declares {len(specs)} tables; a write takes one: "
            "choose it with --name"
        )
    places = [specs[0].path, *(options.sources or ())]
    settings = find_spark_options(options.env, [options.spec], given, places)
    return write_files(specs[0], options, reader_options, settings)


def _check_guards(options: WriteOptions) -> None:
    """Raise UsageError for options about policies that nothing would obey."""
    guards = options.guards
    if options.then is None and (guards.policies or guards.require_policies):
        option = "--policies" if guards.policies else "--require-policies"
        raise UsageError(f"{option}: add --then reconcile; a write alone asks no policy")


def _parse_option(text: str) -> tuple[str, str]:
    """Return the key and value of a ``--source-option``.

    >>> _parse_option("sep=;")
    ('sep', ';')
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--source-option {text}: write it as key=value")
    return key, value
