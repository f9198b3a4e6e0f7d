"""Find what configures Spark so that it reads or prints rows in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler import runtime
from reconciler.cli.options import SparkSettings

#: how settings are spelled that change what a condition means, or the zone of printed times
_SQL: Final = "spark.sql."
_ZONE: Final = "user.timezone"
_SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_DEFAULTS: Final = "spark-defaults.conf"


def find_sql_configuration(settings: SparkSettings) -> str | None:
    """Return what configures a Spark that would start here in this way; None for nothing."""
    if key := next((key for key in settings.conf if key.startswith(_SQL)), None):
        return f"the setting {key} configures Spark SQL"
    if key := next((key for key, value in settings.conf.items() if _ZONE in value), None):
        return f"the setting {key} configures the time zone of Spark"
    return _find_in_surroundings(runtime.environment())


def _find_in_surroundings(variables: Mapping[str, str]) -> str | None:
    arguments = variables.get(_SUBMIT_ARGUMENTS, "")
    if any(text in arguments for text in (_SQL, _ZONE, "--properties-file")):
        return f"{_SUBMIT_ARGUMENTS} configures Spark"
    folder = variables.get("SPARK_CONF_DIR")
    if folder is None and "SPARK_HOME" in variables:
        folder = f"{variables['SPARK_HOME']}/conf"
    if not folder:
        return None
    file = Path(folder) / _DEFAULTS
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return f"{file} configures Spark SQL" if _SQL in text or _ZONE in text else None
