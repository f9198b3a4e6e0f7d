"""Fixing a spelling mistake restores the intended word or leaves it; nothing else changes."""

from __future__ import annotations

import json
import re

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.spec.schema import KINDS, Schema, load_definition
from reconciler.spec.typo_fixes import apply_fixes, find_fixes
from tests.laws.specs import table_specs
from tests.selection import examples


def words(schema: Schema):
    """Yield every name and every choice of a schema."""
    for name, field in schema.get("properties", {}).items():
        yield name
        yield from words(field)
    yield from (each for each in schema.get("enum", ()) if isinstance(each, str))
    if "const" in schema:
        yield schema["const"]
    inner = [schema["items"]] if "items" in schema else schema.get("anyOf", ())
    for each in inner:
        yield from words(each)


KNOWN = {word for kind in KINDS for word in words(load_definition(kind))}
UNITS = ("KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "h", "d", "s", "m")
WORD = re.compile(
    "|".join(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])" for word in sorted(KNOWN, key=len))
    + "|"
    + "|".join(rf"(?<=[0-9]){unit}\b" for unit in UNITS)
)
SLIPS = (
    lambda word, at: word[:at] + word[at + 1 :],
    lambda word, at: word[:at] + word[at] + word[at:],
    lambda word, at: word[:at] + "x" + word[at + 1 :],
    lambda word, at: word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    lambda word, at: word[:at] + word[at].swapcase() + word[at + 1 :],
    lambda word, _: word.upper(),
    lambda word, _: word.lower(),
    lambda word, _: re.sub("([A-Z])", r"_\1", word),
)


@st.composite
def misspelt_files(draw):
    """Draw a correct file, and the same file with one to three misspelt words."""
    head = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "t"}}
    document = {**head, "spec": draw(table_specs())}
    dumped = draw(st.sampled_from([json.dumps, yaml.safe_dump]))
    meant = dumped(document) + draw(st.sampled_from(["", "\n", "\n# comits\n"]))
    places = [found.span() for found in WORD.finditer(meant)]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True))
    wrong = meant
    for start, end in sorted(chosen, reverse=True):
        slip, at = draw(st.sampled_from(SLIPS)), draw(st.integers(0, end - start - 1))
        wrong = wrong[:start] + slip(wrong[start:end], at) + wrong[end:]
    return meant, wrong


def keep_digits(text: str) -> str:
    return re.sub("[^0-9]", "", text)


@settings(deadline=None, max_examples=examples(20, many=150))
@given(misspelt_files())
def test_fixes_restore_the_intended_words(files):
    meant, wrong = files
    fixes = find_fixes(wrong.encode(), "a.yaml")
    after = apply_fixes(wrong.encode(), fixes).decode()
    back = after
    for fix in sorted(fixes, key=lambda fix: fix.start):
        moved = sum(len(one.new) - len(one.old) for one in fixes if one.start < fix.start)
        start = fix.start

        assert fix.old == wrong[start : start + len(fix.old)]
        assert fix.new == after[start + moved : start + moved + len(fix.new)]
        assert keep_digits(fix.old) == keep_digits(fix.new)

        back = back[:start] + fix.old + back[start + len(fix.new) :]

    assert wrong == back
    assert () == find_fixes(after.encode(), "a.yaml")
    # what is still wrong is a slip that was made, as it was made
    assert changed_words(meant, after) <= changed_words(meant, wrong)


def changed_words(meant: str, text: str) -> set[tuple[int, str]]:
    """Return the words that differ from the intended ones, with their positions."""
    wrong, right = re.split(r"([\s\"{}\[\],:]+)", text), re.split(r"([\s\"{}\[\],:]+)", meant)

    assert len(right) == len(wrong)

    return {(n, a) for n, (a, b) in enumerate(zip(wrong, right, strict=True)) if a != b}
