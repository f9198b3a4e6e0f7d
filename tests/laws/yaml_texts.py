"""Random YAML texts of spec files: every style of value, with comments at every place.

They are made from a seed instead of drawn value by value, which is many times as fast. Values are
not those of the schema: formatting does not depend on them.
"""

from __future__ import annotations

import random
from typing import Final

_TEXTS: Final = (
    "x", "a = 1", "012", "yes", "~", "null", "2026-01-01", "1e3", "0x1f", "é ü", "a#b", "12:30",
    "s3://a/b", "-1", ".5", "a: b", "# no", "- x", "*x", "&y", "!z", "[a", "{b", "a'b", 'a"b', "",
    "a, b", "x:y", "?", "|", ">", "%a", "@a", "`b", "true", "a]b", "tail ", "  lead",
)  # fmt: skip
_FIELDS: Final = {
    "HudiTable": ("path", "timezone", "retention", "files", "clustering", "queries", "index"),
    "Environment": ("tables", "pattern", "timezone", "storageOptions", "spark", "costs"),
    "Policy": ("minRetention", "protected", "maxFilesRemoved"),
    "TableDefaults": ("selector", "retention", "files"),
}
_INNER: Final = ("retention", "files", "queries", "name", "where", "commits", "policy", "labels")
_DEEPEST: Final = 4


class TextMaker:
    """Makes one file. ``remarks``: its comments so far, in order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.remarks: list[str] = []
        self._anchors: list[str] = []
        self._step = self._choose((1, 2, 2, 3, 4))
        self._share = self._choose((0.0, 0.1, 0.3))

    def make_file(self) -> str:
        """Return the text of one or two documents."""
        lines = [f"---{self._remark()}"] if self._is(0.1) else []
        lines += self._document()
        if self._is(0.25):
            lines += ["...", *self._above(0)] if self._is(0.5) else []
            lines += [f"---{self._remark()}", *self._document()]
        if self._is(0.2):
            lines += self._above(3)
        ending = self._choose(("\n", "\n", "\r\n"))
        text = ending.join("\n".join(lines).split("\n"))
        return self._choose(("", "", "\ufeff")) + text + self._choose((ending, "", ending * 2))

    def _choose(self, values):
        return self._random.choice(values)

    def _is(self, share: float) -> bool:
        return self._random.random() < share

    # --- comments ---

    def _new_remark(self, end: str) -> str:
        self.remarks.append(f"# remark {len(self.remarks)}: {end}")
        return self.remarks[-1]

    def _remark(self) -> str:
        """Return what ends a line: often nothing, or spaces, or a comment."""
        if not self._is(self._share):
            return self._choose(("", "", " "))
        start, remark = self._choose((" ", "   ", "\t")), self._new_remark("'x")
        return start + remark + self._choose(("", " \t"))

    def _above(self, column: int) -> list[str]:
        """Return comment lines and blank lines, at this column or at another one."""
        lines = []
        while self._is(self._share):
            at = self._choose((column, column, 0, column + 2, self._random.randint(0, 9)))
            if self._is(0.4):
                lines.append(self._choose(("", "   ")))
            else:
                lines.append(" " * at + self._new_remark('"['))
        return lines

    # --- values: lines, of which the first stands behind a key or a dash ---

    def _document(self) -> list[str]:
        self._anchors = []
        kind = self._choose(tuple(_FIELDS))
        names = self._random.sample(_FIELDS[kind], self._random.randint(1, 3))
        fields = [
            [f"apiVersion: reconciler/v1{self._remark()}"],
            [f"kind: {kind}{self._remark()}"],
            [f"metadata: {{name: t}}{self._remark()}"],
            [f"spec:{self._remark()}", *self._mapping(self._step, 1, names)],
        ]
        if not self._is(0.3):  # the anchors stand before their aliases in any order of these
            self._random.shuffle(fields)
        return [*self._above(0), *(line for lines in fields for line in [*lines, *self._above(0)])]

    def _mapping(self, column: int, depth: int, names) -> list[str]:
        lines = []
        for name in names:
            key = self._choose((name, name, name, f"'{name}'")) + self._choose(("", "", " "))
            lines += self._above(column)
            first, *others = self._value(column, depth)
            lines += [f"{' ' * column}{key}:{first}", *others]
        return [*lines, *self._above(column)] if self._is(0.3) else lines

    def _list(self, column: int, depth: int) -> list[str]:
        lines = []
        for _ in range(self._random.randint(1, 3)):
            lines += self._above(column)
            if self._is(0.3):
                names = self._random.sample(("name", "where", "maxScan", "runs"), 2)
                inner = self._mapping(column + 2, depth + 1, names)
                while inner[0].strip(" ")[:1] in ("", "#"):
                    lines.append(inner.pop(0))
                lines += [f"{' ' * column}- {inner[0][column + 2 :]}", *inner[1:]]
            else:
                first, *others = self._value(column, depth)
                lines += [f"{' ' * column}-{first}", *others]
        return lines

    def _value(self, column: int, depth: int) -> list[str]:  # noqa: PLR0911 (a return a kind)
        inside = column + self._step
        kind = self._random.random()
        if kind < 0.05:
            return [self._remark()]
        if kind < 0.1 and self._anchors:
            return [f" *{self._choose(self._anchors)}{self._remark()}"]
        if kind < 0.4 or depth > _DEEPEST:
            start, text = self._properties(), self._text(is_flow=False) + self._remark()
            if self._is(0.1):
                return [self._remark(), *self._above(inside), f"{' ' * inside}{start}{text}"]
            return [f" {start}{text}"]
        if kind < 0.55:
            return self._text_of_lines(column, inside)
        if kind < 0.7:
            return f" {self._brackets(0)}{self._remark()}".split("\n")
        if kind < 0.85:
            names = self._random.sample(_INNER, self._random.randint(1, 4))
            return [self._remark(), *self._mapping(inside, depth + 1, names)]
        at = column + self._choose((0, self._step))
        return [self._remark(), *self._list(at, depth + 1)]

    def _properties(self) -> str:
        if self._is(0.05):
            self._anchors.append(f"n{len(self._anchors)}")
            return f"&{self._anchors[-1]} "
        return "!!str " if self._is(0.02) else ""

    def _text(self, *, is_flow: bool) -> str:
        text, style = self._choose(_TEXTS), self._choose(("plain", "plain", "single", "double"))
        if style == "plain" and _may_be_plain(text, is_flow=is_flow):
            return text
        if style == "single":
            return "'" + text.replace("'", "''") + "'"
        return '"' + text.replace('"', '\\"') + '"'

    def _text_of_lines(self, column: int, inside: int) -> list[str]:
        margin, style = " " * inside, self._choose(("|", ">", "plain", "'", '"'))
        if style == "plain":
            others = [self._choose(("", f"{margin}c d", f"{margin}  e")) for _ in range(2)]
            return [" a b", *others, f"{margin}end{self._remark()}"]
        if style in "'\"":
            others = [self._choose(("", f"{margin}c # d", f"{margin}  e: f")) for _ in range(2)]
            end = self._choose(("end", " end ", ""))
            return [f" {style}a b", *others, f"{margin}{end}{style}{self._remark()}"]
        texts = ("", "a = 1", "# no comment", "  deeper", "trail  ", "x: y", " ")
        chosen = [self._choose(texts) for _ in range(self._random.randint(0, 4))]
        flags = self._choose(("", "", "-", "+"))
        if chosen and chosen[0][:1] in ("", " "):  # the indentation must be given
            flags = self._choose((f"{inside - column}{flags}", f"{flags}{inside - column}"))
        body = [margin + text if text else "" for text in chosen]
        head = f" {self._properties()}{style}{flags}{self._remark()}"
        return [head, *body, *[""] * self._choose((0, 0, 0, 1, 2))]

    def _brackets(self, depth: int) -> str:
        parts = []
        is_list, names = self._is(0.5), self._random.sample(_INNER, self._random.randint(0, 3))
        for name in names:
            inner = self._is(0.3) and depth < 2
            text = self._brackets(depth + 1) if inner else self._text(is_flow=True)
            key = "" if is_list else f"{self._choose((name, repr(name)))}: "
            parts.append(f"{self._gap()}{key}{text}{self._gap()}")
        last = "," if names and self._is(0.2) else ""
        inside = f"{','.join(parts)}{last}"
        return f"[{inside}]" if is_list else f"{{{inside}}}"

    def _gap(self) -> str:
        """Return what stands between the parts of a list in brackets: it may break lines."""
        if self._is(0.75):
            return self._choose(("", "", " "))
        return "\n".join([self._remark(), *self._above(9), " " * 9])


def _may_be_plain(text: str, *, is_flow: bool) -> bool:
    if text != text.strip() or text[:1] in tuple("-?:#&*!|>'\"%@`[]{},") or not text:
        return False
    return ": " not in text and not (is_flow and set(text) & set(",[]{}"))
