"""A class made by the lazy decorator must act as one that Python's decorator made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, FrozenInstanceError, field
from functools import cached_property
from typing import ClassVar

import pytest
from pyspark import cloudpickle

from reconciler.lazy_dataclass import dataclass

PYTHONS = dataclasses.dataclass
OPTIONS = [
    {},
    {"eq": False},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "order": True},
]


def make_class(decorator, options):
    @decorator(**options)
    class Order:
        """An order."""

        limit: ClassVar[int] = 9
        number: int
        rows: list[int] = field(default_factory=list, compare=False)
        note: str = field(default="none", repr=False)
        checked: bool = field(default=False, init=False)

        def __post_init__(self):
            object.__setattr__(self, "checked", self.number > 0)

    return Order


@pytest.fixture(params=OPTIONS, ids=lambda options: ",".join(options) or "no options")
def both(request):
    """The class of the lazy decorator, and the same class of Python's."""
    return make_class(dataclass, request.param), make_class(PYTHONS, request.param)


def tell(act):
    """What an act returns, or the error that it raises in words."""
    try:
        return act()
    except (TypeError, FrozenInstanceError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def set_number(order):
    order.number = 5
    return order.number


def delete_note(order):
    del order.note
    return order.number


def have_one_hash(one, other):
    return hash(one) == hash(other)


@pytest.mark.parametrize(
    "use",
    [
        lambda order: repr(order(number=1, note="a")),
        lambda order: order(1),  # a positional argument of a class that may take none
        lambda order: order(),
        lambda order: order(number=1, unknown=2),
        lambda order: order(number=1) == order(number=1, rows=[5]),
        lambda order: order(number=1) == order(number=2),
        lambda order: order(number=1) == 1,
        lambda order: order(number=1) != order(number=1),
        lambda order: order(number=1) < order(number=2),
        lambda order: have_one_hash(order(number=1), order(number=1, rows=[5])),
        lambda order: have_one_hash(order(number=1), order(number=2)),
        lambda order: set_number(order(number=1)),
        lambda order: delete_note(order(number=1)),
        lambda order: dataclasses.replace(order(number=1), number=3).number,
        lambda order: dataclasses.asdict(order(number=1, rows=[2])),
        lambda order: [field.name for field in dataclasses.fields(order)],
        lambda order: order(number=1).rows is order(number=1).rows,
        lambda order: copy.deepcopy(order(number=1, rows=[2])).rows,
        lambda order: hasattr(order(number=1), "__dict__"),
        lambda order: order.__match_args__,
        lambda order: str(inspect.signature(order)),
        lambda order: order.__doc__,
        lambda order: order.limit,
    ],
)
def test_a_class_acts_as_one_of_python(both, use):
    mine, pythons = (tell(lambda kind=kind: use(kind)) for kind in both)

    if dataclasses.is_dataclass(mine):
        mine, pythons = dataclasses.asdict(mine), dataclasses.asdict(pythons)
    assert mine == pythons


def test_the_signature_is_known_before_and_after_the_first_object(both):
    mine, pythons = both
    before = inspect.signature(mine)
    mine(number=1)

    assert before == inspect.signature(mine) == inspect.signature(pythons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    amount: int
    currency: str = "EUR"


def test_a_frozen_object_refuses_attributes_that_are_no_fields():
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        Money(amount=3).other = 1


def test_a_frozen_object_with_slots_is_pickled():
    money = Money(amount=3)

    assert pickle.loads(pickle.dumps(money)) == money


@dataclass(frozen=True)
class Base:
    first: int

    @cached_property
    def doubled(self):
        return 2 * self.first


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    second: int = 2


class Plain(Derived):
    """Not decorated."""


def test_a_derived_class_takes_the_fields_of_its_base_too():
    assert repr(Derived(1, second=5)) == "Derived(first=1, second=5)"
    assert Derived(1) != Base(1)
    assert Derived(4).doubled == 8


def test_a_class_that_is_not_decorated_is_made_as_its_base():
    assert repr(Plain(1)) == "Plain(first=1, second=2)"
    assert str(inspect.signature(Plain)) == str(inspect.signature(Derived))
    with pytest.raises(FrozenInstanceError):
        Plain(1).first = 2


@dataclass(slots=True)
class WithMethods:
    """Has methods of its own."""

    size: int
    _: KW_ONLY
    unit: str = "B"

    def __repr__(self):
        return f"{self.size} {self.unit}"

    def __eq__(self, other):
        return self.size == other.size

    def __hash__(self):
        return self.size


def test_methods_that_a_class_defines_are_kept():
    one, other = WithMethods(3), WithMethods(3, unit="KiB")

    assert repr(other) == "3 KiB"
    assert one == other
    assert hash(one) == 3
    with pytest.raises(TypeError, match="positional"):
        WithMethods(3, "KiB")


@dataclass(frozen=True)
class Handler:
    prefix: str

    def __call__(self, event, **more):  # noqa: ARG002 - a signature
        return self.prefix + event


def test_a_callable_object_has_the_signature_of_its_call():
    assert str(inspect.signature(Handler("on "))) == "(event, **more)"
    assert str(inspect.signature(Handler)) == "(prefix: 'str') -> None"


def test_fields_may_have_the_names_of_arguments():
    names = ["self", "made", "values", "named", "cls"]
    kind = dataclass(type("Names", (), {"__annotations__": dict.fromkeys(names, "int")}))

    assert dataclasses.asdict(kind(**dict.fromkeys(names, 1))) == dict.fromkeys(names, 1)
    assert repr(kind(1, 2, 3, 4, 5)) == "Names(self=1, made=2, values=3, named=4, cls=5)"


def test_a_frozen_class_that_compares_itself_has_the_hash_of_its_fields():
    @dataclass(frozen=True)
    class Name:  # noqa: PLW1641 - its decorator adds the hash
        text: str
        source: str = field(default="", hash=False)

        def __eq__(self, other):
            return self.text.lower() == other.text.lower()

    assert hash(Name("a", "one")) == hash(Name("a", "two")) == hash(("a",))


@pytest.mark.parametrize("guard", ["__setattr__", "__delattr__"])
def test_a_frozen_class_cannot_set_attributes_in_its_own_way(guard):
    with pytest.raises(TypeError, match="is frozen and sets"):
        dataclass(type("Wrong", (), {guard: lambda *_: None}), frozen=True)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("decorator", [PYTHONS, dataclass])
def test_a_frozen_class_is_not_mixed_with_another(decorator, frozen):
    above = decorator(type("Above", (), {}), frozen=not frozen)
    with pytest.raises(TypeError, match="frozen"):
        dataclass(type("Below", (above,), {}), frozen=frozen)


def test_an_init_that_somebody_wraps_stays_wrapped():
    calls = []
    kind = make_class(dataclass, {})
    first = kind.__init__

    def count(order, *values, **named):
        calls.append(values)
        first(order, *values, **named)

    kind.__init__ = count
    assert [1, 2] == [kind(1).number, kind(2).number]
    assert [(1,), (2,)] == calls
    assert str(inspect.signature(kind)) == "(*values, **named)"


def test_a_class_may_define_what_one_above_it_leaves_abstract():
    class Shape(ABC):
        @abstractmethod
        def __eq__(self, other): ...

        __hash__ = None

    @dataclass(frozen=True)
    class Square(Shape):
        side: int

    assert Square(1) == Square(1) != Square(2)


LOAD = """
import pickle, sys
name, made = pickle.load(sys.stdin.buffer)
print(name("a", rows=[3]), name("a") == name("a", rows=[3]), made in (None, name("a")))
"""


@pytest.mark.parametrize("is_used", [False, True])
def test_a_class_is_complete_where_it_arrives_by_its_value(is_used):
    """Spark sends classes of a notebook in this way."""

    @dataclass(frozen=True, slots=True)
    class Name:
        text: str
        source: str = "none"
        rows: list[int] = field(default_factory=list, compare=False)

    sent = cloudpickle.dumps((Name, Name("a") if is_used else None))
    done = subprocess.run(
        [sys.executable, "-c", LOAD], input=sent, capture_output=True, check=False
    )
    shown = "Name(text='a', source='none', rows=[3]) True True\n"
    assert (shown, "") == (done.stdout.decode(), done.stderr.decode())


@dataclass
class WithInit:
    value: int

    def __init__(self, text):
        self.value = int(text)


def test_an_init_that_a_class_defines_is_kept():
    assert WithInit("12").value == 12
    assert str(inspect.signature(WithInit)) == "(text)"


@dataclass(frozen=True)
class One:
    value: object


@dataclass(frozen=True)
class Nothing:
    """No fields."""


def test_classes_of_one_field_and_of_none_are_compared():
    assert One(1) == One(1) != One(2)
    assert hash(One("a")) == hash(One("a"))
    assert Nothing() == Nothing()
    assert Nothing() != One(1)
    assert len({Nothing(), Nothing()}) == 1


def test_an_object_that_contains_itself_is_shown():
    loop = WithItems([])
    loop.items.append(loop)

    assert repr(loop) == "WithItems(items=[...])"


@dataclass
class WithItems:
    items: list[object]


def test_a_mutable_default_is_refused_as_by_python():
    with pytest.raises(ValueError, match="mutable default"):

        @dataclass
        class _Wrong:
            items: list[int] = []  # noqa: RUF012 - the mistake of this test


def test_threads_that_create_the_first_objects_at_once_get_whole_objects():
    for _round in range(20):
        order = make_class(dataclass, {"frozen": True, "slots": True})
        start = threading.Barrier(4)
        made = []

        def create(order=order, start=start, made=made):
            start.wait()
            made.append(order(number=1, note="a"))

        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [order(number=1, note="a")] * 4
