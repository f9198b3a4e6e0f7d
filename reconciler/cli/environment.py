"""Check an environment's requirements of this process: variables, and Spark's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli.options import Executor, SparkSettings
from reconciler.errors import ReconcilerError

if TYPE_CHECKING:
    from reconciler.plans.model import TablePlan
    from reconciler.spec.model import Option, TableSpec

#: variables that a git hook sets for its own repository
_GIT_HOOK_VARIABLES: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})


def find_spark_options(
    env: str | None,
    paths: Sequence[Path],
    given: SparkSettings,
    locations: Sequence[str] = (),
) -> SparkSettings:
    """Return the given settings of Spark, completed by those of an environment.

    What its storage options say of a store is said to Spark too, where no setting says otherwise.
    ``paths``: where the environment is searched by its name. ``locations``: what Spark may read;
    without any, the locations of the environment tell the stores. Raises SpecError for errors in
    the environment and for variables that are not set.
    """
    if env is None:
        derived = _make_store_settings({}, locations)
        store = {k: value for k, (value, _) in derived.items()}
        return replace(given, conf={**store, **given.conf})
    from reconciler import runtime  # noqa: PLC0415 (commands import this module early)
    from reconciler.spec.environment import read_environment  # noqa: PLC0415
    from reconciler.spec.model import FromEnv  # noqa: PLC0415

    environment = read_environment(env, paths)
    others = {k: value for k, value in environment.spark_conf.items() if k not in given.conf}
    options = environment.storage_options
    places = locations or environment.list_locations()
    derived = _make_store_settings(runtime.resolve_options(options), places)
    private = {k for k, value in others.items() if isinstance(value, FromEnv)}
    private |= {k for k, (_, name) in derived.items() if isinstance(options.get(name), FromEnv)}
    store = {k: value for k, (value, _) in derived.items()}
    wanted = Executor(environment.spark_executor or "auto")
    return replace(
        given,
        executor=wanted if given.executor is Executor.AUTO else given.executor,
        master=given.master or environment.spark_master,
        conf={**store, **runtime.resolve_options(others), **given.conf},
        from_variables=frozenset(private - given.conf.keys()),
    )


def _make_store_settings(
    options: Mapping[str, str], locations: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return Spark's settings for the stores of locations, with the options that they come from."""
    from reconciler.storage.hadoop_settings import make_hadoop_settings  # noqa: PLC0415

    stores = find_stores(locations)
    if not stores and (locations or not options):
        return {}
    from reconciler.cli.spark import find_hadoop  # noqa: PLC0415 (slow)

    hadoop = find_hadoop() if "profile" in options else ""
    return make_hadoop_settings(options, stores, locations, hadoop=hadoop)


def find_stores(locations: Iterable[str]) -> frozenset[str]:
    """Return the kinds of stores (s3, gs, azure) that locations are in."""
    from reconciler.storage.open import find_store  # noqa: PLC0415 (commands import this early)

    return frozenset(store for each in locations if (store := find_store(each)))


def find_storage_options(env: str | None, paths: Sequence[Path]) -> Mapping[str, Option]:
    """Return the storage options of an environment; none without one."""
    if env is None:
        return {}
    from reconciler.spec.environment import read_environment  # noqa: PLC0415

    return read_environment(env, paths).storage_options


def git_environment(**more: str) -> dict[str, str]:
    """Return the variables of this process, without another repository's, for a run of git."""
    from reconciler import runtime  # noqa: PLC0415

    variables = runtime.environment().items()
    return {key: value for key, value in variables if key not in _GIT_HOOK_VARIABLES} | more


def find_environment_name(env: str | None) -> str | None:
    """Return the name of an environment, also if its file was given.

    >>> find_environment_name("prod"), find_environment_name("lake/environments/prod.yaml")
    ('prod', 'prod')
    """
    return None if env is None else Path(env).stem if env.endswith((".yaml", ".yml")) else env


def check_variables(specs: Iterable[TableSpec]) -> None:
    """Raise SpecError with every variable that the tables need and that is not set."""
    from reconciler import runtime  # noqa: PLC0415

    runtime.check_variables(value for spec in specs for value in _list_options(spec))


def _list_options(spec: TableSpec) -> list[Option]:
    """Return the values of all options of a table."""
    catalog = {} if spec.catalog is None else spec.catalog.options
    return [*spec.storage_options.values(), *catalog.values()]


def check_plan_variables(tables: Iterable[TablePlan]) -> None:
    """Raise SpecError with every variable that apply needs for the tables of a plan."""
    from reconciler.spec.document import spec_from_document  # noqa: PLC0415 (the schema)

    specs = []
    for table in tables:
        options = table.spec.get("storageOptions") or table.spec.get("catalog", {}).get("options")
        if not options or table.is_blocked or table.error is not None:
            continue
        try:
            specs.append(spec_from_document(table.spec, table.name, table.path))
        except ReconcilerError:
            continue  # apply reports it
    check_variables(specs)
