"""``reconciler fmt``: write spec files in their canonical form."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from reconciler.cli.error_reports import report_error
from reconciler.cli.files import read_input, rewrite_file
from reconciler.cli.options import command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import Problems, SpecError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.spec.formatting.canonical import format_file
from reconciler.spec.spec_files import SpecFiles

_FOLDERS: Final = ("specs", "policies", "environments")
"""The folders of a repository that are formatted if no path is given."""

_STDIN: Final = Path("-")
_LINE: Final = re.compile(".*\n|.+")
_NO_BREAK: Final = "\n\\ No newline at end of file\n"
_CHANGES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FmtOptions:
    """The options of the command, as given."""

    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SPEC_OR_DIR",
            help="Files, or folders of files; - formats standard input (default: the folders "
            "specs, policies and environments).",
        ),
    ] = None
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write nothing; exit with 2 if a file is not in canonical form."
        ),
    ] = False
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; print what would change.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _FormattedFile:
    """A file that is not in canonical form."""

    file: Path
    before: bytes
    after: bytes


@command
def fmt(options: FmtOptions) -> int:
    """Write specs, policies and environments in one canonical form, and print the files' names.

    Fields stand in the order of the schema. Comments stay, and so does what a file declares.
    """
    if options.paths == [_STDIN]:
        return _format_input(options)
    problems = Problems()
    files = SpecFiles(problems)
    found = files.find_files(options.paths or _find_folders())
    changed = list(_format_files(found, files))
    if options.diff:
        print_result("".join(_show_difference(item) for item in changed))
    is_written = not (options.check or options.diff)
    if is_written:
        changed = [item for item in changed if _write_file(item, problems)]
    if not options.diff:
        print_result("".join(f"{words.escape_text(str(item.file))}\n" for item in changed))
    verb = "formatted" if is_written else "not in canonical form"
    if found:
        log_message(f"{len(changed)} of {words.format_count(len(found), 'file')} {verb}")
    return _report(problems, has_changes=options.check and bool(changed))


def _find_folders() -> list[Path]:
    folders = [Path(name) for name in _FOLDERS if Path(name).is_dir()]
    if not folders:
        raise UsageError(f"no folder {', '.join(_FOLDERS)} here; name the files or folders")
    return folders


def _format_files(found: Sequence[Path], files: SpecFiles) -> Iterator[_FormattedFile]:
    for file in found:
        if file.suffix == ".json":
            files.problems.file_error(file, "is JSON, which fmt does not write", "name it .yaml")
            continue
        before = files.read(file)
        after = None if before is None else format_file(before, str(file), files.problems)
        if before is not None and after is not None and after != before:
            yield _FormattedFile(file=file, before=before, after=after)


def _write_file(item: _FormattedFile, problems: Problems) -> bool:
    problem = rewrite_file(item.file, item.before, item.after)
    if problem is not None:
        problems.file_error(item.file, problem, "it was not formatted")
    return problem is None


def _show_difference(item: _FormattedFile) -> str:
    before, after = (_LINE.findall(data.decode("utf-8-sig")) for data in (item.before, item.after))
    name = str(item.file)
    lines = difflib.unified_diff(before, after, name, name)
    return "".join(line if line.endswith("\n") else f"{line}{_NO_BREAK}" for line in lines)


def _format_input(options: FmtOptions) -> int:
    """Format standard input, for editors."""
    data, name = read_input(_STDIN, "a spec")
    problems = Problems()
    after = format_file(data, name, problems)
    is_changed = after is not None and after != data
    if after is not None and options.diff:
        item = _FormattedFile(file=Path(name), before=data, after=after)
        print_result(_show_difference(item))
    elif after is not None and not options.check:
        print_result(after)
    return _report(problems, has_changes=options.check and is_changed)


def _report(problems: Problems, *, has_changes: bool) -> int:
    try:
        problems.raise_errors()
    except SpecError as error:
        return report_error(error)
    return _CHANGES if has_changes else 0
