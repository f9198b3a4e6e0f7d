"""Answers to questions about a file, an instant or a partition of a table."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from reconciler.lazy_dataclass import dataclass

AnswerKind = Literal["file", "instant", "partition"]

Verdict = Literal[
    "removed",
    "goes",
    "rewritten",
    "kept",
    "refused",
    "newest",
    "retained",
    "unfinished",
    "active",
    "archived",
    "pending",
    "stays",
]
"""What becomes of it: a file that an earlier clean ``removed``, that ``goes`` by this plan, is
``rewritten`` by it and stays until a clean, is past retention and ``kept``, would go by a step
that is ``refused``, is of the ``newest`` slice, is ``retained`` by the policy, or of an
``unfinished`` write; an instant that stays ``active``, ``goes`` to the archive, is ``archived`` or
``pending``; a partition that ``stays`` or ``goes``."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One link of the chain of reasons. ``about``: what it is about, such as ``slice``."""

    about: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What becomes of a thing, and why; ``summary`` says it in one sentence."""

    kind: AnswerKind
    name: str
    verdict: Verdict
    summary: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What was found for a name; ``near``: names that resemble it if nothing was found."""

    answers: tuple[Answer, ...]
    near: tuple[str, ...] = field(default=())
