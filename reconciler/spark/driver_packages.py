"""Find the files of the driver's installed packages, so that workers can be sent them."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass

_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA_OF_MARKER: Final = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")
#: folders and files that nothing imports at work: tests, headers of C, sources of Cython
_LEFT_OUT_FOLDERS: Final = frozenset({"__pycache__", "tests", "include"})
_LEFT_OUT_SUFFIXES: Final = frozenset({".h", ".pxd", ".pxi", ".pyi", ".pyx"})
_REMEDY: Final = (
    "install the driver's packages with pip into a virtual environment, or send a packed "
    "environment with spark.archives (docs/clusters.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFile:
    """A file of a package; ``name``: its path below the folder that Python imports from."""

    name: str
    path: Path
    bytes: int
    modified_ns: int


def find_distributions(packages: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed distributions of packages, and all that they require; by name.

    A requirement that is not installed is one that this platform does not need. Raises
    ReconcilerError for a package that is not installed here.
    """
    found: dict[str, Distribution] = {}
    for package in packages:
        if _find(package) is None:
            raise ReconcilerError(f"the driver itself lacks {package}; install it here first")
        _add_required(found, package, frozenset())
    return found


def _add_required(found: dict[str, Distribution], name: str, extras: frozenset[str]) -> None:
    """Add a distribution and what it requires, with the extras of it that are asked for."""
    distribution = _find(name)
    if distribution is None:
        return
    is_new = normalise_name(name) not in found
    found.setdefault(normalise_name(name), distribution)
    if is_new or extras:
        for required, its_extras in _list_required(
            distribution.requires or (), extras, with_others=is_new
        ):
            if its_extras or normalise_name(required) not in found:
                _add_required(found, required, its_extras)


def _list_required(
    requirements: Iterable[str], extras: frozenset[str], *, with_others: bool
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield what a distribution requires for its extras, and also what it requires without any.

    Markers about the platform are not read, because pip has read them.

    >>> requirements = ["a", "b[c]>=1; python_version>'3'", "e; extra == 'f'"]
    >>> list(_list_required(requirements, frozenset(), with_others=True))
    [('a', frozenset()), ('b', frozenset({'c'}))]
    >>> list(_list_required(requirements, frozenset({"f"}), with_others=False))
    [('e', frozenset())]
    """
    for text in requirements:
        needed = set(_EXTRA_OF_MARKER.findall(text.partition(";")[2]))
        is_wanted = bool(needed & extras) if needed else with_others
        if is_wanted and (named := _REQUIREMENT.match(text)):
            listed = (each.strip() for each in (named[2] or "").split(","))
            yield named[1], frozenset(filter(None, listed))


def _find(name: str) -> Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def normalise_name(name: str) -> str:
    """Return the name by which packaging tools compare distributions.

    >>> normalise_name("Google_CRC32C")
    'google-crc32c'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def list_files(distributions: Mapping[str, Distribution]) -> list[PackageFile]:
    """Return the files of distributions that their import needs, sorted by name.

    Raises ReconcilerError for an installation that cannot be copied: one of conda, whose libraries
    are elsewhere, one that does not list its files, or an editable one.
    """
    files = {
        file.name: file
        for name, distribution in distributions.items()
        for file in _list_distribution(name, distribution)
    }
    return [files[name] for name in sorted(files)]


def _list_distribution(name: str, distribution: Distribution) -> list[PackageFile]:
    if (distribution.read_text("INSTALLER") or "").strip() == "conda":
        raise ReconcilerError(
            f"{name} cannot be sent to workers, because conda installed it and keeps its libraries "
            "elsewhere; pack the environment with conda-pack and send it with spark.archives "
            "(docs/clusters.md)"
        )
    listed = distribution.files
    if listed is None:
        raise ReconcilerError(
            f"{name} cannot be sent to workers, because its installation does not list its files; "
            f"{_REMEDY}"
        )
    files = [
        made
        for path in listed
        if _is_needed(path.parts) and (made := _describe(str(path), Path(str(path.locate()))))
    ]
    if not any(_is_code(file.name) for file in files):
        raise ReconcilerError(
            f"{name} cannot be sent to workers, because its installation is only a link to its "
            f"sources; {_REMEDY}"
        )
    return files


def _is_needed(parts: tuple[str, ...]) -> bool:
    r"""Return whether a file is needed, by the parts of its path.

    >>> _is_needed(("numpy", "linalg.py")), _is_needed(("numpy", "tests", "test_a.py"))
    (True, False)
    >>> _is_needed(("..", "..", "bin", "f2py")), _is_needed(("numpy", "core.pyi"))
    (False, False)
    """
    return (
        parts[0] not in ("..", "/")
        and _LEFT_OUT_FOLDERS.isdisjoint(parts[:-1])
        and Path(parts[-1]).suffix not in _LEFT_OUT_SUFFIXES
    )


def _is_code(name: str) -> bool:
    return name.endswith((".py", ".so", ".pyd")) and ".dist-info/" not in name


def _describe(name: str, path: Path) -> PackageFile | None:
    """Return a file as it is on the disk; None if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return PackageFile(name=name, path=path, bytes=status.st_size, modified_ns=status.st_mtime_ns)
