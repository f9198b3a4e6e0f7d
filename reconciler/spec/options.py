"""Settings of other programs in a file that everybody reads: which of them a variable must hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from reconciler.diagnostics import Problems, did_you_mean, shown
from reconciler.spec.model import FromEnv, Option
from reconciler.spec.nodes import MappingNode, Node, ScalarNode, described, dotted

_REFERENCE: Final = "fromEnv"
_VARIABLE: Final = re.compile("[A-Za-z_][A-Za-z0-9_]{0,254}")
_WORDS: Final = re.compile(
    "auth|bearer|cookie|credentials?|keys?|pass|passphrase|passwd|passwords?|pat|pwd|sas|secrets?"
    "|sig|signature|tokens?"
)
_WITHIN: Final = re.compile(
    "secret|passw|credential|token|(access|account|api|private|shared|signing)key|conn(ection)?str"
)
_HARMLESS: Final = frozenset(("enabled", "file", "filename", "path", "provider", "type"))
_USER_IN_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*:[^/?#\s]*@")


def read_options(
    node: MappingNode, prefix: str, path: str, problems: Problems
) -> dict[str, Option]:
    """The options that are in order, by name. No message repeats what may be a credential."""
    found: dict[str, Option] = {}
    for key, entry in node.entries.items():
        inner = dotted(path, key)
        if not key.strip():
            problems.error(entry.at, path, "has an empty name")
        elif not key.startswith(prefix):
            problems.error(entry.at, inner, f"is no setting that starts with {prefix}")
        elif isinstance(entry.node, MappingNode):
            if variable := _variable(entry.node, inner, problems):
                found[key] = FromEnv(variable=variable, at=f"{entry.at}: {inner}")
        elif smells_of_credentials(key):
            message = "is by its name a credential, and those are never written into a file"
            problems.error(entry.at, inner, message, _hint(key))
        elif (text := _literal(entry.node, inner, problems)) is not None:
            found[key] = text
    return found


def smells_of_credentials(key: str) -> bool:
    """Whether the name of an option is that of a secret, in any of the ways to write it.

    >>> [key for key in ("secret", "AccountKey", "sas_token", "x.SECRET-key", "region") if
    ...  smells_of_credentials(key)]
    ['secret', 'AccountKey', 'sas_token', 'x.SECRET-key']
    >>> smells_of_credentials("fs.s3a.aws.credentials.provider")
    False
    """
    words = re.sub("([a-z0-9])([A-Z])", r"\1 \2", key)
    parts = [word for word in re.split("[^a-z0-9]+", words.lower()) if word]
    if parts[-1:] and parts[-1] in _HARMLESS:
        return False
    return any(map(_WORDS.fullmatch, parts)) or bool(_WITHIN.search("".join(parts)))


def _variable(node: MappingNode, path: str, problems: Problems) -> str | None:
    """The variable of a reference; None after an error."""
    if list(node.entries) != [_REFERENCE]:
        close = [key for key in node.entries if did_you_mean(key, [_REFERENCE])]
        hint = f"write {{{_REFERENCE}: VARIABLE}}, and nothing beside it"
        if not close:
            hint = f"write {{{_REFERENCE}: VARIABLE}}, or a mapping for the client as JSON text"
        problems.error(node.at, path, "expected text or the variable that holds it", hint)
        return None
    name = node.entries[_REFERENCE].node
    value = name.value if isinstance(name, ScalarNode) else None
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    message = "expected the name of a variable"
    problems.error(name.at, f"{path}.{_REFERENCE}", message, "as in {fromEnv: LAKE_SECRET}")
    return None


def _literal(node: Node, path: str, problems: Problems) -> str | None:
    """The text, None after an error."""
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        hint = ""
        if isinstance(node, ScalarNode) and node.value is not None:
            hint = f'put it in quotes: "{node.text}"'
        problems.error(node.at, path, f"expected text, got {described(node)}", hint)
    elif problem := _of_text(node.value) or _of_json(node.value):
        problems.error(node.at, path, *problem)
    else:
        return node.value
    return None


def _of_text(text: str) -> tuple[str, str] | None:
    """What is wrong, and what to do."""
    if not text.strip():
        return "is an empty text", "give it a value, or remove it"
    if "${" in text:
        return f"{shown(text)}: variables are not expanded", "write {fromEnv: VARIABLE}"
    if _USER_IN_URL.search(text):
        return "holds a password in a URL", "write {fromEnv: VARIABLE} and put the URL there"
    return None


def _of_json(text: str) -> tuple[str, str] | None:
    """The same, of a mapping for the client."""
    if not text.startswith("{"):
        return None
    try:
        secret = next(filter(smells_of_credentials, _names(json.loads(text))), None)
    except (ValueError, RecursionError):
        return "starts with { and is no JSON", "clients take a mapping as JSON text"
    if secret is None:
        return None
    return f"holds {shown(secret)}, by its name a credential", _hint(secret)


def _names(value: Any) -> Iterator[str]:
    """The names of what is set somewhere in JSON data."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict | list):
                yield from _names(inner)
            else:
                yield name
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def _hint(key: str) -> str:
    variable = re.sub("[^A-Z0-9]+", "_", key.upper()).strip("_")
    return f"write {{{_REFERENCE}: {variable or 'VARIABLE'}}} and set that variable"
