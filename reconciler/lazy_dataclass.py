"""Python's ``dataclass``, whose methods are compiled when they are first called.

Python writes the text of up to six methods for every dataclass and compiles it while the module is
imported. That is a fifth of what a short command takes, most of it for classes that the command
never creates. Here a class starts with stand-ins. The first call of one has Python's ``dataclass``
make the method for a class of the same fields, and puts it in the place of the stand-in.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - to be imported from here
else:

    def dataclass(cls: type[Any] | None = None, /, **options: bool) -> Any:
        """Return a class as a dataclass, or a decorator that does.

        ``options`` are ``frozen``, ``slots``, ``kw_only``, ``eq`` and ``order``, as of Python's
        ``dataclass``; there are no others, and no ``InitVar``. Fields are declared with Python's
        ``field``. Raises TypeError as Python does if a frozen class has its own ``__setattr__``,
        and if of two dataclasses, one below the other, only one is frozen.
        """
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        if options.get("order"):  # a few small classes
            return dataclasses.dataclass(cls, **options)
        return _make_dataclass(cls, **options)


_GUARDS: Final = ("__setattr__", "__delattr__")
#: what Python's decorator is told so that it makes a method and few others
_OPTIONS: Final[Mapping[str, Mapping[str, bool]]] = {
    "__init__": {"init": True},
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"unsafe_hash": True},
}
_NOTHING: Final[Mapping[str, bool]] = {"init": False, "repr": False, "eq": False}
_MISSING: Final = type(dataclasses.MISSING)


def _make_dataclass(
    cls: type[Any],
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
) -> type[Any]:
    own = frozenset(vars(cls))
    own_hash: Any = vars(cls).get("__hash__")
    hashes_itself = "__hash__" in own and not (own_hash is None and "__eq__" in own)
    _check_guards(cls, own, frozen=frozen)
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else Python writes the signature, which takes time
    declare = dataclasses.dataclass(slots=slots, kw_only=kw_only, **_NOTHING)
    made: type[Any] = declare(cls)
    lazy = _LazyMethods(made, frozen=frozen, slots=slots)
    methods: dict[str, Any] = {"__repr__": lazy.stand_in("__repr__")}
    if "__init__" not in own:
        methods |= {"__init__": lazy.stand_in("__init__"), "__signature__": lazy}
    if eq:
        methods["__eq__"] = lazy.stand_in("__eq__")
    if frozen:
        methods |= _make_guards(made, lazy.names)
    if frozen and slots:
        methods |= _make_pickling(lazy.names)
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    if eq and not hashes_itself:
        setattr(made, "__hash__", lazy.stand_in("__hash__") if frozen else None)  # noqa: B010
    return abc.update_abstractmethods(made)


def _check_guards(cls: type[Any], own: frozenset[str], *, frozen: bool) -> None:
    """Raise TypeError if a class is to be frozen and cannot be, or is not and inherits it."""
    if frozen and not own.isdisjoint(_GUARDS):
        raise TypeError(f"{cls.__name__} is frozen and sets or deletes attributes in its own way")
    above = [base for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)]
    if any(frozen != (_GUARDS[0] in vars(base)) for base in above):
        raise TypeError(f"{cls.__name__} and the dataclasses above it must all be frozen, or none")


class _LazyMethods:
    """The methods of a dataclass, and the signature that ``inspect`` reads from the class."""

    def __init__(self, cls: type[Any], *, frozen: bool, slots: bool) -> None:
        self.cls = cls
        self.frozen = frozen
        self.slots = slots
        # kept, because Python does not find them in a class that was pickled by its value
        self.fields = dataclasses.fields(cls)
        self.names = tuple(field.name for field in self.fields)
        self.stand_ins: dict[str, Callable[..., Any]] = {}
        self.compiled: dict[str, Callable[..., Any]] = {}

    def stand_in(self, name: str) -> Callable[..., Any]:
        """Return a method that has itself replaced by the compiled one, and calls that."""

        def method(made: Any, /, *values: Any, **named: Any) -> Any:
            return self.install(name)(made, *values, **named)

        method.__name__ = name
        method.__qualname__ = f"{self.cls.__qualname__}.{name}"
        self.stand_ins[name] = method
        return method

    def install(self, name: str) -> Callable[..., Any]:
        """Return a compiled method; it replaces the stand-in, but nothing that others put there."""
        if name not in self.compiled:
            self.compiled.setdefault(name, self.compile(name))  # another thread may be quicker
        if vars(self.cls).get(name) is self.stand_ins[name]:
            setattr(self.cls, name, self.compiled[name])
        return self.compiled[name]

    def compile(self, name: str) -> Callable[..., Any]:
        """Let Python make a method for a plain class of the same fields."""
        cls = self.cls
        # Python looks for a module; there is none where a class arrived by its value
        module = cls.__module__ if cls.__module__ in sys.modules else __name__
        content: dict[str, Any] = {"__module__": module, "__qualname__": cls.__qualname__}
        content |= {field.name: _copy_field(field) for field in self.fields}
        content["__annotations__"] = {field.name: field.type for field in self.fields}
        content["__doc__"] = cls.__doc__
        options = {**_NOTHING, **_OPTIONS[name]}
        if name == "__init__":
            options |= {"frozen": self.frozen, "slots": self.slots}
            if hasattr(cls, "__post_init__"):
                content["__post_init__"] = None  # so that it is called
        decorate: Any = dataclasses.dataclass(**options)
        method: Callable[..., Any] = vars(decorate(type(cls.__name__, (), content)))[name]
        return method

    def __get__(self, made: object, owner: type[Any]) -> inspect.Signature:
        """Return the signature of the class.

        Raises AttributeError for its objects and for classes below it, which have their own, and if
        its ``__init__`` is another one by now.
        """
        init = self.install("__init__")
        if made is not None or owner is not self.cls or vars(owner)["__init__"] is not init:
            raise AttributeError("__signature__")
        whole = inspect.signature(init)
        _self, *parameters = whole.parameters.values()
        return whole.replace(parameters=parameters)


def _copy_field(field: dataclasses.Field[Any]) -> Any:
    """Return a field for another class: Python notes in a field of which class it is."""
    starts = {"default": field.default, "default_factory": field.default_factory}
    given: dict[str, Any] = {
        name: start for name, start in starts.items() if not isinstance(start, _MISSING)
    }
    return dataclasses.field(
        init=field.init,
        repr=field.repr,
        hash=field.hash,
        compare=field.compare,
        kw_only=field.kw_only,
        **given,
    )


def _make_guards(cls: type[Any], names: Sequence[str]) -> dict[str, Any]:
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


def _make_pickling(names: Sequence[str]) -> dict[str, Any]:
    """Return what ``pickle`` needs for objects that have slots and refuse to set them."""

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}
