"""``reconciler lint --fix``: correct typos in spec files if that leaves fewer errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reconciler.cli.files import rewrite_file
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import Problems
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.spec.load import read_specs
from reconciler.spec.spec_files import DISK, DiskFiles, SpecFiles
from reconciler.spec.typo_fixes import TypoFix, apply_fixes, find_fixes, is_kind_spelling_fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One file before and after, and the words that differ."""

    file: Path
    before: bytes
    after: bytes
    fixes: tuple[TypoFix, ...]


class _EditedFiles(DiskFiles):
    """The disk with other bytes in some files, by their real paths."""

    def __init__(self, edits: Mapping[str, bytes]) -> None:
        self._edits = edits

    def read_bytes(self, file: Path) -> bytes:
        edited = self._edits.get(self.real_path(file))
        return super().read_bytes(file) if edited is None else edited


def find_repairs(paths: Sequence[Path]) -> tuple[Repair, ...]:
    """Return the files that have fewer errors without their typos, if no other file gets more.

    If that does not hold for all of them together, each is tried with those accepted before it. The
    spelling of a kind is always corrected: errors that appear then were there all the time.
    """
    repairs = {repair.file: repair for repair in _propose_repairs(paths)}
    if not repairs:
        return ()
    kept = {file: kinds for file, repair in repairs.items() if (kinds := _keep_kind_fixes(repair))}
    last = _count_errors(paths, kept.values())
    more = [repair for repair in repairs.values() if repair != kept.get(repair.file)]
    if more and not _is_better(last, _count_errors(paths, repairs.values()), more):
        for repair in more:
            tried = _count_errors(paths, (kept | {repair.file: repair}).values())
            if _is_better(last, tried, (repair,)):
                kept, last = kept | {repair.file: repair}, tried
        return tuple(kept[file] for file in repairs if file in kept)
    return tuple(repairs.values())


def write_repairs(paths: Sequence[Path]) -> None:
    """Write the repaired files, each whole or not at all, and print every replaced word."""
    written = [repair for repair in find_repairs(paths) if _write_repair(repair)]
    fixes = [fix for repair in written for fix in repair.fixes]
    if fixes:
        counts = (
            f"{words.format_count(len(fixes), 'problem')} fixed in "
            f"{words.format_count(len(written), 'file')}"
        )
        print_result("".join(f"{words.escape_text(str(line))}\n" for line in (*fixes, counts)))


def _propose_repairs(paths: Sequence[Path]) -> Iterator[Repair]:
    for file in SpecFiles(Problems()).find_files(paths):
        try:
            data = DISK.read_bytes(file) if DISK.path_kind(file) == "file" else b""
        except OSError:
            continue  # loading reports it
        if fixes := find_fixes(data, str(file)):
            yield Repair(file=file, before=data, after=apply_fixes(data, fixes), fixes=fixes)


def _keep_kind_fixes(repair: Repair) -> Repair | None:
    """Return the part of a repair that only respells kinds; None if there is none."""
    fixes = tuple(fix for fix in repair.fixes if is_kind_spelling_fix(fix))
    return replace(repair, after=apply_fixes(repair.before, fixes), fixes=fixes) if fixes else None


def _count_errors(paths: Sequence[Path], repairs: Iterable[Repair]) -> Counter[str]:
    """Return the number of errors by file after these repairs."""
    source = _EditedFiles({DISK.real_path(repair.file): repair.after for repair in repairs})
    problems = read_specs(paths, source, may_be_empty=True).problems  # there may be policies alone
    return Counter(problem.position.file for problem in problems.errors)


def _is_better(before: Counter[str], after: Counter[str], edited: Sequence[Repair]) -> bool:
    fewer = all(after[str(repair.file)] < before[str(repair.file)] for repair in edited)
    return fewer and all(before[file] >= count for file, count in after.items())


def _write_repair(repair: Repair) -> bool:
    """Write a repaired file and return whether that succeeded."""
    problem = rewrite_file(repair.file, repair.before, repair.after)
    if problem is not None:
        count = words.format_count(len(repair.fixes), "fix")
        log_message(words.escape_text(f"{repair.file}: {problem}; {count} not made"))
    return problem is None
