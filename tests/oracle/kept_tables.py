"""Tables that real Hudi made for tests, kept in archives: a run need not make them again.

``./ci/test --all`` lets real Hudi make each table anew and looks at no archive. So does a usual run
where an archive is missing or younger than the machine's clock. ``RECORD_TABLES=1`` writes archives
of what a run makes, where none is of the code as it is now; without it, that is an error.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import getsource
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

from tests.selection import EVERY_CASE

FOLDER: Final = Path(__file__).parent / "kept"
RECORDING: Final = os.environ.get("RECORD_TABLES", "") == "1"
_ABOUT: Final = "about.json"
_TABLE: Final = "table"
_OURS: Final = "tests."
#: what the code of a table uses of these is a way to ask Hudi, and not what is asked of it
_ASKING: Final = ("tests.selection", "tests.oracle.kept_tables")


@dataclass(frozen=True, kw_only=True)
class KeptTable:
    """One archive; ``made_by``: the code that makes the table, ``arguments``: what it gets."""

    name: str
    made_by: Callable[..., object]
    arguments: object

    @property
    def archive(self) -> Path:
        return FOLDER / f"{self.name}.tar.xz"

    def unpack(self, path: Path) -> dict[str, Any] | None:
        """Write the table to a path and return the facts it was kept with, or None.

        Modification times are kept, because table version 6 depends on them.
        """
        if EVERY_CASE or not self.archive.is_file():
            return None
        with tarfile.open(self.archive) as archive:
            about = _read_about(archive)
            if self._origin() != about.origin:
                assert RECORDING, f"{self.archive} is not of this code: RECORD_TABLES=1"
                return None
            return about.facts if _extract(archive, path) else None

    def record(self, path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the table at a path if asked, which is then that of the archive; return its facts.

        Two processes may do so at once: the later archive stays.
        """
        if not RECORDING or EVERY_CASE:
            return dict(facts)
        FOLDER.mkdir(exist_ok=True)
        new = FOLDER / f".{self.name}.{os.getpid()}"
        with tarfile.open(new, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
            data = json.dumps({**self._origin(), "facts": facts}, sort_keys=True).encode()
            entry = tarfile.TarInfo(_ABOUT)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
            archive.add(path, _TABLE, filter=_without_owner)
        new.rename(self.archive)
        shutil.rmtree(path)
        found = self.unpack(path)
        assert found is not None
        return found

    def _origin(self) -> dict[str, str]:
        """What the table follows from: the code, and what the code gets."""
        return {
            "madeBy": f"{self.made_by.__module__}:{self.made_by.__name__}",
            "code": find_digest(self.made_by),
            "arguments": _digest(repr(self.arguments)),
        }


@dataclass(frozen=True, kw_only=True)
class About:
    """What an archive says of its table; ``origin``: what the table follows from."""

    origin: dict[str, str]
    facts: dict[str, Any]


def read_about(archive: Path) -> About:
    """Return what an archive says of its table."""
    with tarfile.open(archive) as opened:
        return _read_about(opened)


def _read_about(archive: tarfile.TarFile) -> About:
    data = archive.extractfile(_ABOUT)
    assert data is not None
    origin = json.load(data)
    return About(facts=origin.pop("facts"), origin=origin)


def _extract(archive: tarfile.TarFile, path: Path) -> bool:
    """Write the table to a path, if this machine's clock has seen its times.

    Else Hudi's next instants would be older than those of the table.
    """
    members = [one for one in archive.getmembers() if one.name != _ABOUT]
    if max(member.mtime for member in members) > time.time():
        return False
    home = path.parent / f"{path.name}.unpacked"
    archive.extractall(home, members, filter="tar")
    (home / _TABLE).rename(path)
    home.rmdir()
    return True


def find_digest(function: Callable[..., object]) -> str:
    """Return a digest of a function and of all that it uses of the tests."""
    return _digest("\n".join(_list_sources(function)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _list_sources(function: object) -> list[str]:
    """Return the source of a function and of all that it uses of the tests, values as they are."""
    seen: dict[int, str] = {}
    _add_sources(function, seen)
    return list(seen.values())


def _add_sources(value: object, seen: dict[int, str]) -> None:
    if id(value) in seen:
        return
    module = str(getattr(value, "__module__", ""))
    if isinstance(value, FunctionType) and module.startswith(_OURS) and module not in _ASKING:
        seen[id(value)] = getsource(value)
        for name in sorted(_list_names(value.__code__)):
            if name in value.__globals__:
                _add_sources(value.__globals__[name], seen)
    elif isinstance(value, str | int | float | tuple | dict):
        seen[id(value)] = repr(value)


def _list_names(code: CodeType) -> set[str]:
    """Return the global names that code uses, also inside of what it defines."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_list_names, inner))
