"""What ``reconciler lint --fix`` writes: spec files without slips, and nothing that is worse."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.cli.terminal import emit, say
from reconciler.diagnostics import Problems
from reconciler.errors import StorageError
from reconciler.render import words
from reconciler.spec.fix import Fix, fixed, fixes_of, is_kind_respelt
from reconciler.spec.load import read_specs
from reconciler.spec.sources import DISK, Disk, spec_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One file: what was read, what would be written, and the words between them."""

    file: Path
    before: bytes
    after: bytes
    fixes: tuple[Fix, ...]


class _Edited(Disk):
    """The disk as it would be with other bytes in some files, by their real paths."""

    def __init__(self, edits: Mapping[str, bytes]) -> None:
        self._edits = edits

    def read(self, file: Path) -> bytes:
        found = self._edits.get(self.real(file))
        return super().read(file) if found is None else found


def repairs(paths: Sequence[Path]) -> tuple[Repair, ...]:
    """The files that load with fewer errors once their slips are gone, and no other with more.

    Where that is not so for all of them together, each is tried beside those before it. A kind in
    another case is put right first, whatever comes to light behind it: it was there all the time.
    """
    found = {each.file: each for each in _candidates(paths)}
    if not found:
        return ()
    kept = {each.file: kinds for each in found.values() if (kinds := _kinds(each)) is not None}
    last = _errors(paths, kept.values())
    more = [each for each in found.values() if each != kept.get(each.file)]
    if more and not _is_better(last, _errors(paths, found.values()), more):
        for each in more:
            tried = _errors(paths, (kept | {each.file: each}).values())
            if _is_better(last, tried, (each,)):
                kept, last = kept | {each.file: each}, tried
        return tuple(kept[file] for file in found if file in kept)
    return tuple(found.values())


def mend(paths: Sequence[Path]) -> None:
    """Write the repaired files, each whole or not at all, and say every word that is replaced."""
    written = [repair for repair in repairs(paths) if _is_written(repair)]
    fixes = [fix for repair in written for fix in repair.fixes]
    if fixes:
        counts = (
            f"{words.count(len(fixes), 'problem')} fixed in {words.count(len(written), 'file')}"
        )
        emit("".join(f"{words.plain(str(line))}\n" for line in (*fixes, counts)))


def _candidates(paths: Sequence[Path]) -> Iterator[Repair]:
    for file in spec_files(paths, Problems()):
        try:
            data = DISK.read(file) if DISK.kind(file) == "file" else b""
        except OSError:
            continue  # loading says what is wrong with it
        if fixes := fixes_of(data, str(file)):
            yield Repair(file=file, before=data, after=fixed(data, fixes), fixes=fixes)


def _kinds(repair: Repair) -> Repair | None:
    """No more of a repair than the kinds that are only written in another way."""
    fixes = tuple(each for each in repair.fixes if is_kind_respelt(each))
    return replace(repair, after=fixed(repair.before, fixes), fixes=fixes) if fixes else None


def _errors(paths: Sequence[Path], with_: Iterable[Repair]) -> Counter[str]:
    """The number of errors by file, were these repairs made."""
    source = _Edited({DISK.real(each.file): each.after for each in with_})
    problems = read_specs(paths, source, may_be_empty=True).problems  # policies alone, say
    return Counter(problem.place.file for problem in problems.errors)


def _is_better(before: Counter[str], after: Counter[str], edited: Sequence[Repair]) -> bool:
    fewer = all(after[str(each.file)] < before[str(each.file)] for each in edited)
    return fewer and all(before[file] >= count for file, count in after.items())


def _is_written(repair: Repair) -> bool:
    """Whether the file is now as repaired; says why not. A link is followed and stays one."""
    from reconciler.storage.local import LocalStorage  # noqa: PLC0415

    target = Path(DISK.real(repair.file))
    try:
        problem = _obstacle(target, repair.before)
        if problem is None:
            LocalStorage(str(target.parent)).replace(target.name, repair.after)
    except (OSError, StorageError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "strerror", None) or str(error)
    if problem is not None:
        count = words.count(len(repair.fixes), "fix", "fixes")
        say(words.plain(f"{repair.file}: {problem}; {count} not made"))
    return problem is None


def _obstacle(target: Path, expected: bytes) -> str | None:
    mode = stat.S_IMODE(target.stat().st_mode)
    if not mode & 0o222 or not os.access(target, os.W_OK):  # root may write everything
        return "is read-only"
    return None if target.read_bytes() == expected else "was changed meanwhile"
