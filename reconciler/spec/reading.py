"""Nodes against the grammar: plain data with units gone, and every problem on the way."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, assert_never

from reconciler import units
from reconciler.diagnostics import Problems, did_you_mean, quote_value
from reconciler.spec.field_suggestions import find_meant_field, find_meant_word, suggest_field
from reconciler.spec.fields import (
    Anything,
    Block,
    Choice,
    Duration,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Number,
    Options,
    Percent,
    Size,
    Text,
    TextMap,
    TextOr,
    Whole,
    WholeOf,
    WordOr,
)
from reconciler.spec.options import read_options
from reconciler.spec.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    describe_node,
    join_path,
    to_plain,
)

INVALID: Final[Any] = object()
"""What a value is read as when it has a problem; a field that is INVALID is left out."""

_YAML_1_1: Final = {
    **dict.fromkeys(("yes", "on", "y"), "true"),
    **dict.fromkeys(("no", "off", "n"), "false"),
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads values and adds to ``problems``. ``partial`` asks for no required field."""

    problems: Problems
    partial: bool = False

    def read(self, node: Node, kind: Kind, path: str) -> Any:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
        """The value as plain data, or INVALID after at least one error."""
        match kind:
            case Text():
                return self._text(node, kind, path)
            case Choice():
                return self._choice(node, kind, path)
            case Whole():
                return self._whole(node, kind, path)
            case WholeOf(numbers=numbers):
                return self._whole_of(node, numbers, path)
            case Number():
                return self._number(node, kind, path)
            case Flag():
                return self._flag(node, path)
            case Size():
                return self._size(node, kind, path)
            case Duration():
                return self._unit(node, path, units.parse_duration, "a duration such as 24h")
            case Percent():
                return self._unit(node, path, units.parse_percent, "a percentage such as 5%")
            case ListOf():
                return self._list(node, kind, path)
            case TextMap():
                return self._text_map(node, path)
            case MapOf():
                return self._map_of(node, kind, path)
            case Options(prefix=prefix):
                return self._options(node, prefix, path)
            case Anything():
                return self._anything(node, path)
            case Block():
                return self.block(node, kind, path)
            case WordOr():
                return self._word_or(node, kind, path)
            case TextOr():
                return self._text_or(node, kind, path)
            case _:
                assert_never(kind)

    def block(self, node: Node, block: Block, path: str) -> Any:
        """The valid fields by name; INVALID when the node is no mapping at all."""
        if not isinstance(node, MappingNode):
            fields = ", ".join(block.names)
            return self._expected(node, path, "a mapping", f"its fields are {fields}")
        found = {}
        for key, entry in node.entries.items():
            inner = join_path(path, key)
            field = block.field(key)
            if field is None:
                hint = suggest_field(key, block, path)
                self.problems.error(entry.position, inner, "unknown field", hint)
                continue
            value = self.read(entry.node, field.kind, inner)
            if value is not INVALID:
                found[key] = value
        self._missing(node, block, path)
        return found

    def _missing(self, node: MappingNode, block: Block, path: str) -> None:
        unknown = [key for key in node.entries if block.field(key) is None]
        meant = {find_meant_field(key, block, path) for key in unknown}
        for field in block.fields:
            if not field.required or self.partial or join_path(path, field.name) in meant:
                continue
            if field.name not in node.entries:
                inner = join_path(path, field.name)
                self.problems.error(node.position, inner, "is missing", _sentence(field.says))

    def _expected(self, node: Node, path: str, what: str, hint: str = "") -> Any:
        if isinstance(node, ScalarNode) and node.value is None:
            message = f"has no value; expected {what}"
            hint = "give it one, or remove the line"
        else:
            message = f"expected {what}, got {describe_node(node)}"
        self.problems.error(node.position, path, message, hint)
        return INVALID

    def _wrong(self, node: Node, path: str, message: str, hint: str = "") -> Any:
        self.problems.error(node.position, path, message, hint)
        return INVALID

    def _text(self, node: Node, kind: Text, path: str) -> Any:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            hint = f'put it in quotes: "{node.text}"' if isinstance(node, ScalarNode) else ""
            return self._expected(node, path, "text", hint)
        if not node.value.strip():
            return self._wrong(node, path, "is an empty text", "give it a value, or remove it")
        if kind.pattern is not None and not re.fullmatch(kind.pattern, node.value):
            return self._expected(node, path, kind.says)
        if kind.check is not None and (problem := kind.check(node.value)):
            return self._wrong(node, path, problem)
        return node.value

    def _choice(self, node: Node, kind: Choice, path: str) -> Any:
        words = _either(kind.words)
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            return self._expected(node, path, words)
        if node.value in kind.words:
            return node.value
        if any(word in node.value.lower().replace("_", "") for word in kind.refused):
            return self._wrong(
                node, path, f"{node.value!r} is not built yet", f"this version knows {words}"
            )
        close = find_meant_word(node.value, kind.words)
        hint = f"did you mean {close!r}?" if close else ""
        return self._expected(node, path, words, hint)

    def _whole(self, node: Node, kind: Whole, path: str) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, int) or isinstance(value, bool):
            return self._expected(node, path, "a whole number", _as_whole(node, kind.unit))
        if value < kind.least:
            least = f"must be at least {kind.least}, got {value}"
            return self._wrong(node, path, least, kind.why)
        if value > kind.most:
            return self._wrong(node, path, f"must be at most {kind.most}, got {value}")
        return value

    def _whole_of(self, node: Node, numbers: tuple[int, ...], path: str) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, int) and not isinstance(value, bool) and value in numbers:
            return value
        known = f"one of {', '.join(map(str, numbers))}"
        return self._expected(node, path, known, _as_whole(node, ""))

    def _number(self, node: Node, kind: Number, path: str) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            return self._expected(node, path, "a number", _as_number(node))
        if value < kind.least or (kind.most is not None and value > kind.most):
            limits = f"at least {kind.least:g}"
            if kind.most is not None:
                limits = f"between {kind.least:g} and {kind.most:g}"
            return self._wrong(node, path, f"must be {limits}, got {value}")
        return float(value)

    def _flag(self, node: Node, path: str) -> Any:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        hint = ""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            meant = _YAML_1_1.get(node.value.lower(), node.value.lower())
            hint = f"write {meant}" if meant in ("true", "false") else ""
        return self._expected(node, path, "true or false", hint)

    def _size(self, node: Node, kind: Size, path: str) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, int) and not isinstance(value, bool):
            size: Any = value
            if size > units.LARGEST_SIZE:
                return self._wrong(node, path, f"must be at most {units.LARGEST_SIZE} bytes")
        else:
            size = self._unit(node, path, units.parse_size, "a size such as 120MiB")
        if size is not INVALID and size < kind.least:
            return self._wrong(node, path, f"must be at least {kind.least} bytes, got {size}")
        return size

    def _unit(self, node: Node, path: str, parse: Callable[[str], Any], what: str) -> Any:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            hint = "add the unit" if isinstance(node, ScalarNode) else ""
            return self._expected(node, path, what, hint)
        try:
            return parse(node.value)
        except ValueError as error:
            return self._wrong(node, path, str(error))

    def _list(self, node: Node, kind: ListOf, path: str) -> Any:
        if not isinstance(node, SequenceNode):
            hint = f"write [{node.text}]" if isinstance(node, ScalarNode) and node.text else ""
            return self._expected(node, path, "a list", hint)
        if len(node.items) < kind.least:
            return self._wrong(node, path, "is an empty list", "give it at least one item")
        found = [self.read(each, kind.item, f"{path}[{i}]") for i, each in enumerate(node.items)]
        self._repeated(node, found, kind.unique, path)
        return [value for value in found if value is not INVALID]

    def _repeated(
        self, node: SequenceNode, found: list[Any], unique: str | None, path: str
    ) -> None:
        seen = set()
        for index, value in enumerate(found):
            if unique is None or value is INVALID:
                continue
            name = value if unique == "items" else value.get(unique)
            if name in seen:
                at = node.items[index].position
                self.problems.error(
                    at, f"{path}[{index}]", f"{quote_value(name)} is in the list twice"
                )
            elif name is not None:
                seen.add(name)

    def _text_map(self, node: Node, path: str) -> Any:
        if not isinstance(node, MappingNode):
            return self._expected(node, path, "a mapping of text", "write name: value")
        found = {}
        for key, entry in node.entries.items():
            if not key.strip():
                self.problems.error(entry.position, path, "has an empty name")
                continue
            found[key] = self._text(entry.node, Text(), join_path(path, key))
        return {key: value for key, value in found.items() if value is not INVALID}

    def _map_of(self, node: Node, kind: MapOf, path: str) -> Any:
        if not isinstance(node, MappingNode):
            return self._expected(node, path, "a mapping", "write name: value")
        found = {}
        for key, entry in node.entries.items():
            inner = join_path(path, key)
            named = self._text(ScalarNode(entry.position, key, key), kind.name, inner)
            value = self.read(entry.node, kind.item, inner)
            if named is not INVALID and value is not INVALID:
                found[key] = value
        return found

    def _options(self, node: Node, prefix: str, path: str) -> Any:
        if not isinstance(node, MappingNode):
            return self._expected(node, path, "a mapping of text", "write name: value")
        return read_options(node, prefix, path, self.problems)

    def _anything(self, node: Node, path: str) -> Any:
        return (
            to_plain(node)
            if isinstance(node, MappingNode)
            else self._expected(node, path, "a mapping")
        )

    def _word_or(self, node: Node, kind: WordOr, path: str) -> Any:
        if isinstance(node, ScalarNode) and node.value == kind.word:
            return kind.word
        if not isinstance(node, MappingNode):
            close = did_you_mean(node.text, [kind.word]) if isinstance(node, ScalarNode) else None
            hint = (
                f"did you mean {close!r}?"
                if close
                else f"its fields are {', '.join(kind.block.names)}"
            )
            return self._expected(node, path, f"{kind.word!r} or a mapping", hint)
        if not node.entries:
            return self._wrong(
                node,
                path,
                "says nothing",
                f"write {kind.word}, or {_or(kind.block.names)}",
            )
        return self.block(node, kind.block, path)

    def _text_or(self, node: Node, kind: TextOr, path: str) -> Any:
        if not isinstance(node, MappingNode):
            return self._text(node, kind.text, path)
        if not node.entries:
            return self._wrong(node, path, "says nothing", f"write {_or(kind.block.names)}")
        return self.block(node, kind.block, path)


def _or(names: tuple[str, ...]) -> str:
    return f"some of {', '.join(names)}"


def _either(words: tuple[str, ...]) -> str:
    """The words in half a sentence; two are simply named."""
    first, *rest = words
    return f"one of {', '.join(words)}" if rest[1:] else " or ".join((first, *rest))


def _as_whole(node: Node, unit: str) -> str:
    """What to write instead, when the text can only mean one whole number."""
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str | float):
        return ""
    if unit and (found := _in_units(node.text, units.DURATION_UNITS[unit])):
        return f"write {found}"
    text = node.text.replace("_", "").removesuffix(".0").strip()
    if not re.fullmatch(r"-?[0-9]{1,20}", text):
        return ""
    return "remove the quotes" if node.quoted and text == node.text else f"write {int(text)}"


def _in_units(text: str, factor: int) -> int | None:
    """A duration as a count of ``factor`` seconds, when it is a whole one."""
    try:
        seconds = units.parse_duration(text)
    except ValueError:
        return None
    return seconds // factor if seconds % factor == 0 else None


def _as_number(node: Node) -> str:
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        return ""
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", node.text):
        return f"write {float(node.text[:-1]) / 100:g}"
    return "remove the quotes" if re.fullmatch(r"[0-9.]{1,20}", node.text) else ""


def _sentence(text: str) -> str:
    first = text[0] if text.startswith("Hudi") else text[0].lower()
    return first + text[1:].rstrip(".")
