"""What an environment requires of this process: variables, and Spark's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import ReconcilerError

if TYPE_CHECKING:
    from reconciler.plans.model import TablePlan
    from reconciler.spec.model import TableSpec


def find_spark_options(
    env: str | None, paths: Sequence[Path], master: str | None, settings: Mapping[str, str]
) -> tuple[str | None, Mapping[str, str]]:
    """Return Spark's master and settings, with those of an environment where none are given.

    ``paths``: where the environment is searched by its name. Raises SpecError for errors in the
    environment and for variables that are not set.
    """
    if env is None:
        return master, settings
    from reconciler import runtime  # noqa: PLC0415 (commands import us early)
    from reconciler.spec.environment import read_environment  # noqa: PLC0415

    found = read_environment(env, paths)
    theirs = {key: value for key, value in found.spark_conf.items() if key not in settings}
    return master or found.spark_master, {**runtime.resolve_options(theirs), **settings}


def find_environment_name(env: str | None) -> str | None:
    """Return the name of an environment, also if its file was given.

    >>> find_environment_name("prod"), find_environment_name("lake/environments/prod.yaml")
    ('prod', 'prod')
    """
    return None if env is None else Path(env).stem if env.endswith((".yaml", ".yml")) else env


def check_variables(specs: Iterable[TableSpec]) -> None:
    """Raise SpecError with every variable that the tables need and that is not set."""
    from reconciler import runtime  # noqa: PLC0415

    runtime.check_variables(each for spec in specs for each in spec.storage_options.values())


def check_plan_variables(tables: Iterable[TablePlan]) -> None:
    """Raise SpecError with every variable that apply needs for the tables of a plan."""
    from reconciler.spec.document import spec_from_document  # noqa: PLC0415 (the schema)

    found = []
    for table in tables:
        if not table.spec.get("storageOptions") or table.refusals or table.error is not None:
            continue
        try:
            found.append(spec_from_document(table.spec, table.name, table.path))
        except ReconcilerError:
            continue  # apply reports it
    check_variables(found)
