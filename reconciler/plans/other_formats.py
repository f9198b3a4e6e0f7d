"""Recognize files that are not plans and say what they are."""

from __future__ import annotations

import json
import re
from typing import Any

_SPEC = re.compile(r"^\s*apiVersion\s*:\s*\S+", re.MULTILINE)
_RENDERED = re.compile(r"<!-- reconciler:plan|^Plan: .*digest sha256:", re.MULTILINE)
TRUNCATED = "is truncated: it was cut off when it was written or copied; make or copy it again"
_MAKE_ONE = "`reconciler plan SPEC_OR_DIR -o plan.json` makes one"

#: top-level keys that a plan never has, and the message for the document that has them
_OTHER_DOCUMENTS = {
    "terraform_version": f"is the JSON of an OpenTofu or Terraform plan; {_MAKE_ONE}",
    "planned_values": f"is the JSON of an OpenTofu or Terraform plan; {_MAKE_ONE}",
    "apiVersion": "is a spec, not a plan; `reconciler plan` makes a plan of it",
    "$schema": f"is a JSON Schema; {_MAKE_ONE}",
    "observedAt": "is the output of `reconciler status`; apply needs a plan",
    "planDigest": "is the result of an apply; apply needs the plan itself",
}


def describe_bytes(data: bytes) -> str | None:
    """Return what the bytes are if they are not text; None if they may be text."""
    if not data.strip():
        return f"is empty; {_MAKE_ONE}"
    if data.startswith(b"PK\x03\x04"):
        return f"is a ZIP archive, as OpenTofu's and Terraform's plan files are; {_MAKE_ONE}"
    if data.startswith(b"\x1f\x8b"):
        return "is compressed with gzip; unpack it first"
    if b"\0" in data[:4096]:
        return f"is a binary file, not a plan; {_MAKE_ONE}"
    return None


def describe_text(text: str, error: json.JSONDecodeError) -> str:
    """Return what a text is that the JSON parser refused."""
    if text.lstrip().startswith("{"):
        stripped = text.rstrip()
        is_cut = not stripped.endswith("}") or error.pos >= len(stripped)
        if is_cut or error.msg.startswith("Unterminated string"):
            return TRUNCATED
        where = f"line {error.lineno}, column {error.colno}"
        return f"is damaged: {error.msg} at {where}; make the plan again"
    if _RENDERED.search(text):
        return "is a rendered plan; apply and show need the JSON that `plan -o` writes"
    if _SPEC.search(text):
        return "is a spec, not a plan; `reconciler plan` makes a plan of it"
    return f"is not JSON, so it is not a plan; {_MAKE_ONE}"


def describe_value(value: Any) -> str | None:
    """Return what a JSON value is instead of a plan; None if it may be a plan."""
    if not isinstance(value, dict):
        return f"is JSON but not a plan; {_MAKE_ONE}"
    for key, sentence in _OTHER_DOCUMENTS.items():
        if key in value:
            return sentence
    if "format" not in value:
        return f'is JSON but not a plan (it has no "format"); {_MAKE_ONE}'
    return None
