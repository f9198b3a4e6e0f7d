"""Options for other programs, and which of them are secrets that a variable must hold.

An option is text, whatever it is written as: true, 4 and "4" mean the same, and a mapping is the
JSON text that its program reads. So a plan's bytes do not depend on the spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from reconciler.errors import Problems, did_you_mean, quote_value
from reconciler.spec.model import FromEnv, Option
from reconciler.spec.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    describe_node,
    join_path,
    to_plain,
)

_REFERENCE: Final = "fromEnv"
_VARIABLE: Final = re.compile("[A-Za-z_][A-Za-z0-9_]{0,254}")
_CREDENTIAL_WORDS: Final = re.compile(
    "auth|bearer|cookie|credentials?|keys?|pass|passphrase|passwd|passwords?|pat|pwd|sas|secrets?"
    "|sig|signature|tokens?"
)
_CREDENTIAL_PARTS: Final = re.compile(
    "secret|passw|credential|token|(access|account|api|private|shared|signing)key|conn(ection)?str"
)
_TOKEN_SOURCES: Final = frozenset(("anon", "cache", "cloud", "google_default"))
_HARMLESS_SUFFIXES: Final = frozenset(("enabled", "file", "filename", "path", "provider", "type"))
_USER_IN_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*:[^/?#\s]*@")


def read_options(
    node: MappingNode, path: str, problems: Problems, *, takes_mappings: bool = False
) -> dict[str, Option]:
    """Return the valid options by name. No message repeats a value that may be a credential.

    ``takes_mappings``: the program reads mappings; an option may be one.
    """
    options: dict[str, Option] = {}
    for key, entry in node.entries.items():
        inner = join_path(path, key)
        if isinstance(entry.node, MappingNode):
            if takes_mappings and not is_credential_name(key) and _is_plain_mapping(entry.node):
                if (text := _read_mapping(entry.node, inner, problems)) is not None:
                    options[key] = text
            elif variable := _read_variable(entry.node, inner, problems):
                options[key] = FromEnv(variable=variable, declared_at=f"{entry.position}: {inner}")
        elif is_credential_name(key) and not _is_public(key, entry.node):
            message = "is a credential by its name, and files must not have credentials"
            problems.error(entry.position, inner, message, _suggest_variable(key))
        elif (text := _read_literal(entry.node, inner, problems)) is not None:
            options[key] = text
    return options


def _is_public(key: str, node: Node) -> bool:
    """Return whether a token is the name of a way to find credentials, as of gcsfs."""
    return key == "token" and isinstance(node, ScalarNode) and node.value in _TOKEN_SOURCES


def is_credential_name(key: str) -> bool:
    """Return whether an option is a secret by its name, in any spelling.

    >>> [key for key in ("secret", "AccountKey", "sas_token", "x.SECRET-key", "region") if
    ...  is_credential_name(key)]
    ['secret', 'AccountKey', 'sas_token', 'x.SECRET-key']
    >>> is_credential_name("fs.s3a.aws.credentials.provider")
    False
    """
    words = re.sub("([a-z0-9])([A-Z])", r"\1 \2", key)
    parts = [word for word in re.split("[^a-z0-9]+", words.lower()) if word]
    if parts[-1:] and parts[-1] in _HARMLESS_SUFFIXES:
        return False
    return any(map(_CREDENTIAL_WORDS.fullmatch, parts)) or bool(
        _CREDENTIAL_PARTS.search("".join(parts))
    )


def _read_variable(node: MappingNode, path: str, problems: Problems) -> str | None:
    """Return the variable of a reference; None after an error."""
    if list(node.entries) != [_REFERENCE]:
        close = [key for key in node.entries if did_you_mean(key, [_REFERENCE])]
        rest = "and nothing else" if close else "or a mapping for the client as JSON text"
        hint = f"write {{{_REFERENCE}: VARIABLE}}, {rest}"
        problems.error(node.position, path, "expected text or the variable that holds it", hint)
        return None
    name = node.entries[_REFERENCE].node
    value = name.value if isinstance(name, ScalarNode) else None
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    message = "expected the name of a variable"
    problems.error(name.position, f"{path}.{_REFERENCE}", message, "as in {fromEnv: LAKE_SECRET}")
    return None


def _is_plain_mapping(node: MappingNode) -> bool:
    """Return whether a mapping is one for the program, and not a reference or a misspelt one."""
    return bool(node.entries) and not any(
        key == _REFERENCE or did_you_mean(key, [_REFERENCE]) for key in node.entries
    )


def _read_mapping(node: MappingNode, path: str, problems: Problems) -> str | None:
    """Return a mapping as JSON text, sorted by names; None after an error."""
    before = len(problems.errors)
    _check_inner_values(node, path, problems)
    return None if len(problems.errors) > before else json.dumps(to_plain(node), sort_keys=True)


def _check_inner_values(node: Node, path: str, problems: Problems) -> None:
    """Report credentials, variables and invalid texts in a mapping, each at its own place."""
    if isinstance(node, ScalarNode):
        if isinstance(node.value, str) and (problem := _find_text_problem(node.value)):
            problems.error(node.position, path, *problem)
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            _check_inner_values(item, f"{path}[{index}]", problems)
    elif _REFERENCE in node.entries:
        hint = "write the whole mapping as JSON text into a variable, or the value here"
        problems.error(node.position, path, "a variable holds a whole option, not a part", hint)
    else:
        for key, entry in node.entries.items():
            inner = join_path(path, key)
            if isinstance(entry.node, ScalarNode) and is_credential_name(key):
                message = "is a credential by its name, and files must not have credentials"
                problems.error(entry.position, inner, message, _suggest_variable(key))
            else:
                _check_inner_values(entry.node, inner, problems)


def _read_literal(node: Node, path: str, problems: Problems) -> str | None:
    """Return the text of a node; None after an error."""
    if not isinstance(node, ScalarNode) or node.value is None:
        problems.error(node.position, path, f"expected text, got {describe_node(node)}")
        return None
    text = node.text.lower() if isinstance(node.value, bool) else node.text
    if problem := _find_text_problem(text) or _find_json_problem(text):
        problems.error(node.position, path, *problem)
        return None
    return text


def _find_text_problem(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a text and what to do; None if it is valid."""
    if not text.strip():
        return "is an empty text", "give it a value, or remove it"
    if "${" in text:
        return f"{quote_value(text)}: variables are not expanded", "write {fromEnv: VARIABLE}"
    if _USER_IN_URL.search(text):
        return "has a password in a URL", "write {fromEnv: VARIABLE} and put the URL there"
    return None


def _find_json_problem(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a mapping written as JSON, and what to do."""
    if not text.startswith("{"):
        return None
    try:
        secret = next(filter(is_credential_name, _list_setting_names(json.loads(text))), None)
    except (ValueError, RecursionError):
        return "starts with { but is not JSON", "write a mapping as JSON text"
    if secret is None:
        return None
    return f"has {quote_value(secret)}, a credential by its name", _suggest_variable(secret)


def _list_setting_names(value: Any) -> Iterator[str]:
    """Yield the names of all values in JSON data."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict | list):
                yield from _list_setting_names(inner)
            else:
                yield name
    elif isinstance(value, list):
        for inner in value:
            yield from _list_setting_names(inner)


def _suggest_variable(key: str) -> str:
    variable = re.sub("[^A-Z0-9]+", "_", key.upper()).strip("_")
    return f"write {{{_REFERENCE}: {variable or 'VARIABLE'}}} and set this variable"
