"""Which masters of Spark a command takes, and which values of reconciler's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler import runtime
from reconciler.errors import ReconcilerError, UsageError
from reconciler.spark.executor_wait import EXECUTOR_TIMEOUT, parse_limit
from reconciler.spark.shipping import SHIP, parse_shipping

_MASTERS: Final = ("local", "yarn", "spark://", "k8s://", "mesos://")
#: with any of these, PySpark starts a session of Spark Connect
_CONNECT_VARIABLES: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
#: "connect" or "classic", of Spark 4
_API_MODE: Final = "spark.api.mode"


def check_master(master: str | None, conf: Mapping[str, str]) -> None:
    """Raise UsageError for an invalid master, and for Spark Connect, wherever it is configured."""
    if connect := _find_connect(master, conf, runtime.environment()):
        raise UsageError(
            f"{connect} chooses Spark Connect, which cannot run the work of a command; leave it "
            "out, and use a master of the cluster itself (--master spark://..., yarn, k8s://...) "
            "or spark-submit. In Python, reconciler.read takes a session of Spark Connect"
        )
    if master is not None and not master.startswith(_MASTERS):
        raise UsageError(f"--master {master}: expected one of {', '.join(_MASTERS)}...")


def check_own_settings(conf: Mapping[str, str]) -> None:
    """Raise UsageError for a value that a setting of reconciler's own does not take."""
    try:
        if EXECUTOR_TIMEOUT in conf:
            parse_limit(conf[EXECUTOR_TIMEOUT])
        if SHIP in conf:
            parse_shipping(conf[SHIP])
    except ReconcilerError as error:
        raise UsageError(str(error)) from None


def _find_connect(
    master: str | None, conf: Mapping[str, str], variables: Mapping[str, str]
) -> str | None:
    """Return what would make PySpark start a session of Spark Connect; None for nothing.

    A remote's address may hold a token, so none is repeated. Source: SparkSession.Builder.

    >>> _find_connect("sc://host/;token=secret", {}, {})
    '--master sc://'
    >>> _find_connect(None, {"spark.api.mode": "connect"}, {})
    'the setting spark.api.mode'
    """
    if master is not None and master.startswith("sc://"):
        return "--master sc://"
    if name := next((name for name in _CONNECT_VARIABLES if name in variables), None):
        return f"the variable {name}"
    if "spark.remote" in conf or conf.get("spark.master", "").startswith("sc://"):
        return "the setting spark.remote" if "spark.remote" in conf else "the setting spark.master"
    if _API_MODE in conf:
        return f"the setting {_API_MODE}" if conf[_API_MODE].lower() == "connect" else None
    mode = variables.get("SPARK_API_MODE", "")
    return "the variable SPARK_API_MODE" if mode.lower() == "connect" else None
