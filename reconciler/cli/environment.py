"""What an environment says of Spark, beneath what the command line says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def spark_of(
    env: str | None, paths: Sequence[Path], master: str | None, settings: Mapping[str, str]
) -> tuple[str | None, Mapping[str, str]]:
    """Spark's master and settings; ``paths`` are where a name of an environment is looked up from.

    Raises SpecError for what is wrong with the environment and for variables that are not set.
    """
    if env is None:
        return master, settings
    from reconciler import world  # noqa: PLC0415 (commands import us early)
    from reconciler.spec.environment import read_environment  # noqa: PLC0415

    found = read_environment(env, paths)
    theirs = {key: value for key, value in found.spark_conf.items() if key not in settings}
    return master or found.spark_master, {**world.resolved(theirs), **settings}
