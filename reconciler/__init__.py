"""Bring Apache Hudi tables to a declared state: plan, review, apply."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.api import advise, apply, load_specs, observe, plan, read, write

__all__ = ["advise", "apply", "load_specs", "observe", "plan", "read", "write"]


class _Room(ModuleType):
    """A subpackage that is called like the function it shares its name with, and looks like it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        from inspect import signature  # noqa: PLC0415 (only who asks pays for it)

        return signature(self._function)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The function's, and how it is called: ``help`` takes it for a module's."""
        from inspect import getdoc  # noqa: PLC0415

        return f"{getdoc(self._function)}\n\n{self._function.__name__}{self.__signature__}"

    @property
    def _function(self) -> Any:
        return getattr(import_module("reconciler.api"), self.__name__.rpartition(".")[2])


class _Package(ModuleType):
    """``reconciler.plan`` and ``reconciler.apply`` are rooms of the house and functions of the API.

    Importing a room would put the module in the function's place; so the module can be called.
    Everything else of the API is loaded when it is used: the command line must start fast.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in __all__ and isinstance(value, ModuleType):
            value.__class__ = _Room
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in ("apply", "plan"):
            return import_module(f"reconciler.{name}")
        if name in __all__:
            return getattr(import_module("reconciler.api"), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
