"""Shell completion: names of tables, labels and environments from the spec files.

It runs at every key press, so it reads no table, does not load specs completely and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import typer

_SPECS = Path("specs")


def table_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the tables in the spec files of the command line, or in ``specs``."""
    return _complete_from(incomplete, lambda: _read_metadata(_find_spec_paths(ctx), "name"))


def label_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return ``label=value`` of the tables in the same files."""
    return _complete_from(incomplete, lambda: _read_metadata(_find_spec_paths(ctx), "labels"))


def environment_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the environments beside or above the same files."""
    return _complete_from(incomplete, lambda: _list_environments(_find_spec_paths(ctx)[0]))


def _complete_from(incomplete: str, find: Callable[[], Iterator[str]]) -> list[str]:
    matches: list[str] = []
    with suppress(Exception):  # a shell cannot show an error here
        matches = sorted({name for name in find() if name.startswith(incomplete)})
    return matches


def _find_spec_paths(ctx: typer.Context) -> list[Path]:
    """Return the arguments so far, specs or not, or the usual folder without any."""
    return [Path(word) for word in ctx.params.get("specs") or ctx.args] or [_SPECS]


def _read_metadata(paths: list[Path], field: str) -> Iterator[str]:
    from reconciler.errors import Problems  # noqa: PLC0415
    from reconciler.spec.spec_files import SpecFiles  # noqa: PLC0415
    from reconciler.spec.yaml_nodes import MappingNode, to_plain  # noqa: PLC0415
    from reconciler.spec.yaml_parser import parse_yaml  # noqa: PLC0415

    files = SpecFiles(Problems())
    for file in files.find_files(paths):
        for node in parse_yaml(files.read(file) or b"", str(file), files.problems):
            if isinstance(node, MappingNode) and _is_table(to_plain(node)):
                value = to_plain(node)["metadata"].get(field)
                if isinstance(value, str):
                    yield value
                elif isinstance(value, dict):
                    yield from (f"{name}={text}" for name, text in value.items())


def _is_table(document: dict[str, object]) -> bool:
    return document.get("kind") == "HudiTable" and isinstance(document.get("metadata"), dict)


def _list_environments(path: Path) -> Iterator[str]:
    from reconciler.spec.spec_files import find_parent_folder  # noqa: PLC0415

    folder = find_parent_folder(path if path.is_dir() else path.parent, "environments")
    for file in folder.iterdir() if folder is not None else ():
        if file.suffix in (".yaml", ".yml") and not file.name.startswith("."):
            yield file.stem
