"""Python's ``dataclass``, with methods that are made when they are needed.

Python compiles the text of six methods for every dataclass while its module is imported. That is a
fifth of what a short command takes, most of it for classes that the command never creates. Here all
classes share their methods but ``__init__``, which has to be fast: Python's own ``dataclass`` makes
it when the first object of a class is created.
"""

from __future__ import annotations

import dataclasses
import inspect
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - to be imported from here
else:

    def dataclass(cls: type[Any] | None = None, /, **options: bool) -> Any:
        """Return a class as a dataclass, or a decorator that does.

        ``options`` are ``frozen``, ``slots``, ``kw_only``, ``eq`` and ``order``, as of Python's
        ``dataclass``. Fields, and all other functions for dataclasses, are those of Python.
        """
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        if options.get("order"):  # a few small classes
            return dataclasses.dataclass(cls, **options)
        return _make_dataclass(cls, **options)


def _make_dataclass(
    cls: type[Any],
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
) -> type[Any]:
    own = frozenset(vars(cls))
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else Python writes the signature, which takes time
    declare = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    made: type[Any] = declare(cls)
    fields = dataclasses.fields(made)
    methods: dict[str, Any] = {"__repr__": _show}
    if "__init__" not in own:
        init = _LazyInit(made, frozen=frozen, slots=slots)
        methods |= {"__init__": init.make_first(), "__signature__": init}
    if eq:
        compared = [field.name for field in fields if field.compare]
        methods |= _make_comparison(compared, is_hashed=frozen)
    if frozen:
        methods |= _make_guards(made, frozenset(field.name for field in fields))
    if frozen and slots:
        methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


# --- creating objects ----------------------------------------------------------------------------


class _LazyInit:
    """The ``__init__`` of a dataclass, and the signature that ``inspect`` reads from its class."""

    def __init__(self, cls: type[Any], *, frozen: bool, slots: bool) -> None:
        self.cls = cls
        self.frozen = frozen
        self.slots = slots

    def make_first(self) -> Callable[..., None]:
        """Return an ``__init__`` that puts the compiled one in its own place, and calls it."""

        def __init__(made: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
            self.compile()(made, *values, **named)

        __init__.__qualname__ = f"{self.cls.__qualname__}.__init__"
        return __init__

    def compile(self) -> Callable[..., None]:
        """Let Python make ``__init__`` for a class of the same fields, and take it from there."""
        cls = self.cls
        content: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
        if hasattr(cls, "__post_init__"):
            content["__post_init__"] = None
        fields = dataclasses.fields(cls)
        content |= {field.name: _copy_field(field) for field in fields}
        content["__annotations__"] = {field.name: field.type for field in fields}
        content["__doc__"] = cls.__doc__
        twin = type(cls.__name__, (), content)
        declare = dataclasses.dataclass(repr=False, eq=False, frozen=self.frozen, slots=self.slots)
        init: Callable[..., None] = vars(declare(twin))["__init__"]
        cls.__init__ = init
        return init

    def __get__(self, made: object, owner: type[Any]) -> inspect.Signature:
        """Return the signature of the class.

        Raises AttributeError for its objects and for classes below it, which have their own.
        """
        init = self.compile()
        if made is not None or owner is not self.cls:
            raise AttributeError("__signature__")
        whole = inspect.signature(init)
        _self, *parameters = whole.parameters.values()
        return whole.replace(parameters=parameters)


def _copy_field(field: dataclasses.Field[Any]) -> Any:
    """Return a field for another class: Python notes in a field of which class it is."""
    return dataclasses.field(
        default=field.default,
        default_factory=field.default_factory,
        init=field.init,
        kw_only=field.kw_only,
    )


# --- methods that all classes share --------------------------------------------------------------


@recursive_repr()
def _show(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _make_comparison(names: Sequence[str], *, is_hashed: bool) -> dict[str, Any]:
    """Return ``__eq__`` and ``__hash__`` of the values of some fields."""
    one_more = ("__class__",) * (2 - len(names))  # of one name, attrgetter returns no tuple
    get_values = attrgetter(*names, *one_more)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is self.__class__:
            return get_values(self) == get_values(other)
        return NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(get_values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if is_hashed else None}


def _make_guards(cls: type[Any], names: frozenset[str]) -> dict[str, Any]:
    """Return methods that refuse to set and to delete fields."""

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _get_state(self: Any) -> list[Any]:
    """Return what ``pickle`` keeps of an object that refuses to set its fields."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
