"""Storage options of an environment: reconciler's own, alike for every store, and the client's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.errors import Problems, did_you_mean, quote_value
from reconciler.spec.model import FromEnv, Option
from reconciler.spec.options import is_credential_name, read_options
from reconciler.spec.yaml_nodes import Entry, MappingNode, ScalarNode, describe_node, join_path
from reconciler.units import parse_duration

#: reconciler's own durations, with the least of seconds
_DURATIONS: Final = {"requestTimeout": 1, "retryFor": 0}
_SWITCHES: Final = ("anonymous", "pathStyle")
_TEXTS: Final = ("endpoint", "profile", "region")
OWN_OPTIONS: Final = (*_TEXTS, *_SWITCHES, *_DURATIONS)
#: options of the clients that are spelt like one of reconciler's own
_CLIENT_OPTIONS: Final = frozenset({"anon", "endpoint_url", "requests_timeout"})
#: other words for reconciler's own options; none is an option of a client
_ALIASES: Final = {
    "addressing_style": "pathStyle",
    "endpoint_override": "endpoint",
    "force_path_style": "pathStyle",
    "profile_name": "profile",
    "region_name": "region",
}
#: an own option, and where the client of a store has the same
_SAME: Final = {
    "anonymous": ("anon",),
    "endpoint": ("endpoint_url", "client_kwargs.endpoint_url"),
    "pathStyle": ("config_kwargs.s3.addressing_style",),
    "region": ("client_kwargs.region_name",),
}
_URL: Final = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


def read_storage_options(node: MappingNode, path: str, problems: Problems) -> dict[str, Option]:
    """Return the valid options by name. No message repeats a value that may be a credential."""
    known = _report_misspelt(node, path, problems)
    options = read_options(known, path, problems, takes_mappings=True)
    checked = {
        key: value
        for key, value in options.items()
        if not _report_wrong_value(known.entries[key], join_path(path, key), value, problems)
    }
    for key in options.keys() & _SAME.keys():
        _report_twice(known, path, key, options, problems)
    _report_useless_credentials(known, path, checked, problems)
    return checked


def _report_misspelt(node: MappingNode, path: str, problems: Problems) -> MappingNode:
    """Report keys that are misspelt names of own options; return the mapping without them."""
    entries = {}
    for key, entry in node.entries.items():
        if meant := find_meant_option(key):
            hint = f"did you mean {meant!r}?"
            problems.error(entry.position, join_path(path, key), "unknown option", hint)
        else:
            entries[key] = entry
    return MappingNode(node.position, entries)


def find_meant_option(key: str) -> str | None:
    """Return the own option that a misspelt key means; None for any other key.

    >>> find_meant_option("path_style"), find_meant_option("regoin"), find_meant_option("profile")
    ('pathStyle', 'region', None)
    >>> find_meant_option("endpoint_url"), find_meant_option("region_name")
    (None, 'region')
    """
    if key in OWN_OPTIONS or key in _CLIENT_OPTIONS:
        return None
    plain = {name.lower(): name for name in OWN_OPTIONS}
    word = re.sub("[^a-z]", "", key.lower())
    return _ALIASES.get(key) or plain.get(word) or did_you_mean(key, OWN_OPTIONS)


def _report_wrong_value(entry: Entry, path: str, value: Option, problems: Problems) -> bool:
    """Report a value that its own option cannot have; return whether it was one."""
    if isinstance(value, FromEnv):
        return False
    problem = _find_problem(path.rpartition(".")[2], value, entry)
    if problem is not None:
        problems.error(entry.node.position, path, *problem)
    return problem is not None


def _find_problem(key: str, text: str, entry: Entry) -> tuple[str, str] | None:
    """Return what is wrong with the value of an option, and what to write."""
    if key in _DURATIONS:
        problem = _find_duration_problem(text, _DURATIONS[key])
        return None if problem is None else (problem, 'as in "30s"')
    if key in _SWITCHES and text not in ("true", "false"):
        return f"expected true or false, got {quote_value(text)}", ""
    if key == "endpoint" and not _URL.fullmatch(text):
        return f"{quote_value(text)} is not the URL of a server", "as in https://s3.example.com"
    is_text = isinstance(entry.node, ScalarNode) and isinstance(entry.node.value, str)
    if key not in _TEXTS or is_text:
        return None
    hint = f'put it in quotes: "{text}"' if isinstance(entry.node, ScalarNode) else ""
    return f"expected text, got {describe_node(entry.node)}", hint


def _find_duration_problem(text: str, least_s: int) -> str | None:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        return str(error)
    return None if seconds >= least_s else f"{quote_value(text)} is too short: the least is 1s"


def _report_twice(
    node: MappingNode, path: str, key: str, options: Mapping[str, Option], problems: Problems
) -> None:
    """Report an own option beside the client's option for the same."""
    for other in _SAME[key]:
        name, *inner = other.split(".")
        if name in options and (not inner or _has_setting(options[name], inner)):
            message = f"says the same as {join_path(path, other)}"
            problems.error(node.entries[key].position, join_path(path, key), message, "keep one")


def _has_setting(value: Option, names: list[str]) -> bool:
    if isinstance(value, FromEnv):
        return False
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return False
    for name in names:
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return True


def _report_useless_credentials(
    node: MappingNode, path: str, options: Mapping[str, Option], problems: Problems
) -> None:
    """Report anonymous access beside credentials, which it would leave unused."""
    if options.get("anonymous") != "true":
        return
    for key in _list_credentials(options):
        message = "anonymous access uses no credentials"
        position = node.entries[key].position
        problems.error(position, join_path(path, key), message, "remove it, or anonymous: true")


def _list_credentials(options: Mapping[str, Option]) -> Iterator[str]:
    names = ("credential", "client_id", "profile", "tenant_id")
    return (key for key in options if key in names or is_credential_name(key))
