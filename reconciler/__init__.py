"""Bring Apache Hudi tables to a declared state: plan, review, apply."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.api import advise, apply, load_specs, observe, plan, read, sync, verify, write

__all__ = ["advise", "apply", "load_specs", "observe", "plan", "read", "sync", "verify", "write"]


def __getattr__(name: str) -> Any:
    """Load the API when it is used (PEP 562): the command line must start fast."""
    if name in __all__:
        return getattr(import_module("reconciler.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
