"""Write docs/reference/ from the schema of specs and from the command line.

    .venv/bin/python ci/site/reference.py

Run it after a change of ``table-spec.v1.json`` or of a command's options, and commit the pages.
``tests/unit/test_reference.py`` fails until that is done.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.main import get_command

from reconciler.cli.app import COMMANDS, build_program

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
SCHEMA = ROOT / "reconciler" / "spec" / "table-spec.v1.json"
NOTICE = (
    "<!-- Written by ci/site/reference.py. Change the schema or the command's help instead. -->\n"
)
#: of each kind of document: the page, its title and what it begins with
KINDS = {
    "HudiTable": ("table-specs.md", "Table specs"),
    "Policy": ("policies.md", "Policies"),
    "Environment": ("environment-files.md", "Environment files"),
}
BEGINS = {
    "HudiTable": """\
A document of kind `HudiTable` declares one table. A block that is absent is unmanaged: plans do
not touch what it is about. [Table defaults](#table-defaults) supply fields of many tables.""",
    "Policy": """\
A document of kind `Policy` limits what plans may do. [Guardrails](../guardrails.md) describes
which policies apply, and what a refusal looks like.""",
    "Environment": """\
A document of kind `Environment` says where tables are, and how their stores, catalogs and Spark
are reached. [Environments](../environments.md) describes precedence and costs.""",
}
FIELDS = """\
The fields are those of the JSON Schema that `reconciler lint --schema` prints.
[The schema of spec files](../spec-schema.md) describes how files are checked."""
DEFAULTS = """\
A document of kind `TableDefaults` supplies fields for the tables that its `selector` takes. Its
`spec` has these fields of a table's:"""
COMMAND_LINE = """\
`reconciler COMMAND --help` prints the same. [Commands](../commands.md) says what each is for."""
EXIT_CODES = """\
The worst table decides. [Operations](../operations.md#exit-codes) has the details."""
VALUES = {
    "size": "size such as `120MiB`",
    "byteCount": "bytes",
    "duration": "duration such as `24h`",
    "percentage": "share such as `5%`",
    "moment": "day or time, such as `2026-12-31` or `2026-12-31T23:59:59Z`",
    "location": "path or URL",
    "timezone": "time zone such as `Europe/Berlin`",
    "name": "name of letters, digits, `.`, `_` and `-`",
    "environmentVariable": "`{fromEnv: VARIABLE}`",
    "textByName": "texts by name",
    "options": "values by name",
    "catalogUri": "URI such as `thrift://host:9083`",
}
FORMATS = {
    "time-span": VALUES["duration"],
    "sql-condition": "condition as after `WHERE`",
    "partition-pattern": "glob or `/regular expression/`",
    "partition-date": "pattern such as `dt=%Y-%m-%d`, or `lastCommit`",
    "location-pattern": "location with `{name}`, `{schema}` or `{table}`",
    "lock-folder": "path or URL",
}
TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
}
LISTED = {"": "", "[]": "list of ", ".NAME": "by name: "}


@dataclass(slots=True, kw_only=True)
class SchemaPage:
    """Sections of one kind of document; each block of fields has one, where it is met first."""

    definitions: Mapping[str, Any]
    sections: list[str] = field(default_factory=list)
    headings: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, node: Mapping[str, Any], required: Mapping[str, Any]) -> None:
        """Add the section of a block, and those of the blocks in it."""
        own = [*node.get("required", ()), *required.get("required", ())]
        inner = required.get("properties", {})
        rows, below = [], []
        for name, value in node["properties"].items():
            target = self.resolve(value)
            block, suffix = find_block(target, self.definitions)
            shown = self.value(value)
            if block is not None:
                where = f"{path}.{name}{suffix}" if path else f"{name}{suffix}"
                key = identify(block)
                known = self.headings.get(key)
                if known is None:
                    self.headings[key] = known = where
                    below.append((where, block, inner.get(name, {})))
                words = [self.value(one) for one in value.get("anyOf", ()) if "const" in one]
                shown = " or ".join([*words, f"{LISTED[suffix]}[`{known}`](#{anchor(known)})"])
            default = value.get("default", target.get("default"))
            meaning = value.get("description", "")
            rows.append((f"`{name}`", shown, describe(meaning, default, is_required=name in own)))
        self.sections.append(
            (f"## {path}\n\n" if path else "") + table(("field", "value", "meaning"), rows)
        )
        for where, block, more in below:
            self.add(where, block, more)

    def resolve(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the value with its definition merged in."""
        name = value.get("$ref", "").rpartition("/")[2]
        return {**self.resolve(self.definitions[name]), **value} if name else value

    def value(self, value: Mapping[str, Any]) -> str:
        """Return which values a field takes, in words."""
        name = value.get("$ref", "").rpartition("/")[2]
        if name in VALUES:
            return VALUES[name]
        target = self.resolve(value)
        if "anyOf" in target:
            return " or ".join(dict.fromkeys(self.value(one) for one in target["anyOf"]))
        if target.get("type") == "array":
            return f"list of {self.value(target.get('items', {}))}"
        if target.get("type") == "object":
            more = target.get("additionalProperties")
            return f"by name: {self.value(more)}" if isinstance(more, dict) else "mapping"
        return describe_scalar(target)


def describe_scalar(node: Mapping[str, Any]) -> str:
    choices = node.get("enum", [node["const"]] if "const" in node else [])
    if choices == ["true", "false"]:
        return TYPES["boolean"]
    if choices:
        return ", ".join(f"`{json.dumps(one).strip(chr(34))}`" for one in choices)
    if node.get("format") in FORMATS:
        return FORMATS[node["format"]]
    if "patternErrorMessage" in node:
        return prose(node["patternErrorMessage"])
    return describe_type(node)


def find_block(
    node: Mapping[str, Any], definitions: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, str]:
    """Return the block of fields that a value is, or has many of, and the suffix of its path."""
    if node.get("type") == "object" and "properties" in node:
        return node, ""
    for key, suffix in (("anyOf", ""), ("items", "[]"), ("additionalProperties", ".NAME")):
        inner = node.get(key)
        choices = inner if isinstance(inner, list) else [inner]
        for one in choices[0].get("anyOf", choices) if isinstance(choices[0], dict) else ():
            name = one.get("$ref", "").rpartition("/")[2]
            target = {} if name in VALUES else definitions.get(name, one)
            if target.get("type") == "object" and "properties" in target:
                return target, suffix
    return None, ""


def describe_type(node: Mapping[str, Any]) -> str:
    kind = node.get("type", "")
    kinds = [kind] if isinstance(kind, str) else kind
    text = " or ".join(TYPES.get(one, one) for one in kinds)
    least, most = node.get("minimum"), node.get("maximum")
    if least is not None and most is not None and most < 10**6:
        return f"{text}, {least} to {most}"
    return f"{text}, at least {least}" if least else text


def describe(meaning: str, default: object, *, is_required: bool) -> str:
    """Return what a field means, with its default."""
    if is_required:
        return f"Required. {prose(meaning)}"
    if default is None:
        return prose(meaning)
    return f"{prose(meaning)} Default: `{json.dumps(default).strip(chr(34))}`."


def write_kind(kind: str, schema: Mapping[str, Any]) -> str:
    """Return the page of a kind of document."""
    _, title = KINDS[kind]
    definitions = schema["$defs"]
    complete = definitions["completeTable"] if kind == "HudiTable" else {}
    page = SchemaPage(definitions=definitions)
    page.add("", definitions[kind], {"properties": {"spec": complete}})
    if kind == "HudiTable":
        add_defaults(page)
    return f"{NOTICE}\n# {title}\n\n{BEGINS[kind]}\n\n{FIELDS}\n\n" + "\n".join(page.sections)


def add_defaults(page: SchemaPage) -> None:
    """Add the section on table defaults, whose blocks are those of a table."""
    defaults = page.definitions["defaults"]
    fields = ", ".join(f"`{name}`" for name in defaults["properties"])
    page.headings[identify(defaults)] = "spec"
    page.sections.append(f"## Table defaults\n\n{DEFAULTS}\n{fields}.\n")
    page.add("", page.definitions["TableDefaults"], {})


def identify(block: Mapping[str, Any]) -> str:
    """Return what is equal for blocks with the same fields."""
    about = ("$ref", "description", "default")
    return json.dumps({key: value for key, value in block.items() if key not in about})


def write_commands() -> str:
    """Return the page of all commands."""
    program: Any = get_command(build_program())
    parts = [
        f"{NOTICE}\n# The command line\n",
        f"{COMMAND_LINE}\n",
        "## Options of every command\n\nThey may stand anywhere on the command line.\n",
        table(("option", "meaning"), map(describe_option, list_parameters(program, "option"))),
    ]
    for name in COMMANDS:
        parts += describe_command(name, program.commands[name])
    parts += [
        f"## Exit codes\n\n{EXIT_CODES}\n",
        table(("code", "meaning"), list_exit_codes(program.epilog)),
    ]
    return "\n".join(parts)


def describe_command(name: str, command: Any) -> Iterator[str]:
    arguments = list_parameters(command, "argument")
    options = list_parameters(command, "option")
    words = ["reconciler", name, *map(describe_argument, arguments), "[OPTIONS]"]
    yield f"## {name}\n\n```\n{' '.join(words)}\n```\n"
    yield prose(re.sub(r"(?<!\n)\n(?!\n)", " ", command.help)) + "\n"
    if arguments:
        rows = ((f"`{one.metavar or one.name.upper()}`", prose(one.help)) for one in arguments)
        yield table(("argument", "meaning"), rows)
    yield table(("option", "meaning"), map(describe_option, options))


def describe_argument(argument: Any) -> str:
    word = (argument.metavar or argument.name.upper()) + ("…" if argument.nargs != 1 else "")
    return word if argument.required else f"[{word}]"


def list_parameters(command: Any, kind: str) -> list[Any]:
    found = [one for one in command.params if one.param_type_name == kind]
    return [one for one in found if not one.hidden and "completion" not in one.name]


def describe_option(option: Any) -> tuple[str, str]:
    names = [*sorted(option.opts, key=len), *option.secondary_opts]
    value = "" if option.is_flag else " " + (option.metavar or describe_values(option.type))
    default = option.default.value if isinstance(option.default, enum.Enum) else option.default
    text = prose(option.help or "")
    if default not in (None, False, (), []) and "default:" not in text:
        text += f" Default: `{default}`."
    if option.required:
        text += " Required."
    if option.envvar:
        text += f" Also from the variable `{option.envvar}`."
    return ", ".join(f"`{name}{value}`" for name in names), text


def describe_values(kind: Any) -> str:
    return "/".join(map(str, kind.choices)) if hasattr(kind, "choices") else kind.name.upper()


def list_exit_codes(epilog: str) -> Iterator[tuple[str, str]]:
    """Return the codes in the text below the program's help."""
    text = " ".join(epilog.split()).removeprefix("Exit codes: ").removesuffix(".")
    for part in re.split(r", (?=\d)", text):
        code, _, meaning = part.partition(" ")
        yield code, prose(meaning)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def prose(text: str) -> str:
    """Return a text in which no sign means anything to Markdown, but for `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*<|\[])", r"\\\1", part) for part in parts
    )


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def write_pages() -> dict[str, str]:
    """Return every page by its file name."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    kinds = {KINDS[kind][0]: write_kind(kind, schema) for kind in KINDS}
    return {**kinds, "command-line.md": write_commands()}


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name, text in write_pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
