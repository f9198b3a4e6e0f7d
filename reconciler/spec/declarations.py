"""Documents of spec files with a checked envelope; their ``spec`` is not checked yet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from reconciler.errors import Problems, SourcePosition, did_you_mean, quote_value
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.schema import API_VERSION, KINDS, load_envelope
from reconciler.spec.spec_files import SpecFiles
from reconciler.spec.structure import read_structure
from reconciler.spec.yaml_nodes import MappingNode, Node, ScalarNode, describe_node
from reconciler.spec.yaml_parser import parse_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A document with a valid envelope; ``envelope`` is its data without the spec's."""

    kind: str
    envelope: dict[str, Any]
    node: MappingNode
    spec: MappingNode

    @property
    def name(self) -> str:
        return str(self.envelope["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.envelope["metadata"].get("labels", {}))

    @property
    def file(self) -> str:
        return self.node.position.file

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.file))  # noqa: PTH100, PTH120 (links stay)

    @property
    def name_position(self) -> SourcePosition:
        """The position of the name."""
        metadata = self.node.get("metadata")
        return (metadata if isinstance(metadata, MappingNode) else self.node).key_position("name")


def read_declarations(file: Path, files: SpecFiles) -> Iterator[Declaration]:
    """Yield the documents of a file, without those whose envelope has an error."""
    data, problems = files.read(file), files.problems
    for node in parse_yaml(data, str(file), problems) if data is not None else ():
        if declaration := _build_declaration(node, problems):
            yield declaration


def select_kind(kind: str, declarations: Iterable[Declaration]) -> list[Declaration]:
    """Return the documents of one kind."""
    return [item for item in declarations if item.kind == kind]


def check_unique_names(declarations: Iterable[Declaration], problems: Problems) -> None:
    """Report names that two documents of a kind have."""
    first: dict[tuple[str, str], Declaration] = {}
    for item in declarations:
        known = first.setdefault((item.kind, item.name), item)
        if known is not item:
            at, other = item.name_position, f"the {item.kind} in {known.name_position}"
            message = f"{quote_value(item.name)} is already the name of {other}"
            problems.error(at, "metadata.name", message, "give it another name")


def _build_declaration(node: Node, problems: Problems) -> Declaration | None:
    kind = read_kind(node, problems)
    if kind is None or not isinstance(node, MappingNode):
        return None
    envelope = read_structure(node, load_envelope(kind), problems, "")
    spec = node.get("spec")
    if "name" not in envelope.get("metadata", {}) or not isinstance(spec, MappingNode):
        return None
    return Declaration(kind=kind, envelope=envelope, node=node, spec=spec)


def read_kind(node: Node, problems: Problems) -> str | None:
    """Return the kind of a document, None after an error."""
    if not isinstance(node, MappingNode):
        message = f"expected a spec, got {describe_node(node)}"
        problems.error(node.position, "", message, f"start it with apiVersion: {API_VERSION}")
        return None
    kind = node.get("kind")
    if isinstance(kind, ScalarNode) and kind.value in KINDS:
        return str(kind.value)
    if kind is None:
        if "apiVersion" in node.entries:
            problems.error(node.position, "kind", "is missing", f"write one of {', '.join(KINDS)}")
        else:
            hint = f"start it with apiVersion: {API_VERSION} and kind: HudiTable, or move the file"
            problems.error(
                node.position, "", "not a spec: it has neither apiVersion nor kind", hint
            )
        return None
    close = did_you_mean(kind.text, KINDS) if isinstance(kind, ScalarNode) else None
    message = f"expected one of {', '.join(KINDS)}, got {describe_node(kind)}"
    problems.error(kind.position, "kind", message, f"did you mean {close!r}?" if close else "")
    return None
