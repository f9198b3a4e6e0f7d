"""``reconciler demo``: a small table from its first rows to clustered, indexed and clean files."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.cli.terminal import emit, wants_color
from reconciler.errors import AlreadyExistsError, ReconcilerError
from reconciler.render import words
from reconciler.render.paint import Paint

if TYPE_CHECKING:
    from reconciler.demo.looking import Sizes
    from reconciler.demo.orders import Batch
    from reconciler.spec.model import TableSpec
    from reconciler.storage.api import Storage

_SPEC: Final = "orders.yaml"
_TABLE: Final = "orders"
_ROWS: Final = "rows"
_PLAN: Final = "plan.json"
_QUERY: Final = ("--where", "customer_id = 42", "--columns", "amount")
_WIDTH: Final = 80


def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder to look around.")] = False,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Work in this new folder, and keep it.")
    ] = None,
) -> int:
    """Make a small table and bring it from its first rows to clustered, indexed and clean files."""
    if directory is not None and directory.exists():
        raise AlreadyExistsError(str(directory), "exists already; name a new folder")
    folder = directory or Path(tempfile.mkdtemp(prefix="reconciler-demo-"))
    kept = keep or directory is not None
    try:
        code = _walk(folder.absolute())
    finally:
        if not kept:
            shutil.rmtree(folder)
    emit(f"\nThe table is yours to look at: {folder}\n" if kept else
         "\nThe folder is gone again; `reconciler demo --keep` leaves it.\n")  # fmt: skip
    return code


def _walk(folder: Path) -> int:
    from reconciler import api, world  # noqa: PLC0415
    from reconciler.cli.spark import spark_session  # noqa: PLC0415
    from reconciler.demo.orders import batches  # noqa: PLC0415 (Arrow)

    written = batches()
    _lay_out(folder, written)
    (spec,) = api.load_specs(folder / _SPEC)
    shop = _Shop(
        folder=folder,
        spec=spec,
        storage=world.open_storage(spec.path),
        written=written,
        paint=Paint(is_on=wants_color()),
    )
    shop.bring_rows()
    shop.plan()
    with spark_session(None, {}, in_python=True):  # one for all commands
        code = shop.apply()
        if code:
            return code
        shop.read()
    shop.plan_again()
    return 0


def _lay_out(folder: Path, written: Sequence[Batch]) -> None:
    """Put the spec and files of rows into the folder."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    (folder / _ROWS).mkdir(parents=True)
    for batch in written:
        pq.write_table(batch.rows, _rows_of(folder, batch))
    spec = (files("reconciler") / "demo" / _SPEC).read_text(encoding="utf-8")
    (folder / _SPEC).write_text(spec, encoding="utf-8")
    _tell("A shop has files of orders and no table yet. What the table is to be like:")
    emit("\n" + "".join(f"    {line}\n" for line in spec.splitlines()))


def _rows_of(folder: Path, batch: Batch) -> Path:
    return folder / _ROWS / f"{batch.name}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shop:
    """A folder with a spec, rows and a table, and those who are shown what happens to them."""

    folder: Path
    spec: TableSpec
    storage: Storage
    written: Sequence[Batch]
    paint: Paint

    def bring_rows(self) -> None:
        """Write the batches, and show what the insert among them fills."""
        *loads, insert, upsert, delete = self.written
        self._head("Rows come")
        _tell("""\
            Three bulk loads come from the counter. The first one makes the table. Bulk loads fill
            no files, so each leaves a small one behind it for every day. (The command writes on
            Spark. Rows are few here, so this process runs the same program.)""")
        self._show("cd", str(self.folder))
        for batch in loads:
            self._write(batch)
        _tell("The web shop's orders come by an insert, which fills small files first:")
        before = self._sizes()
        self._write(insert)
        self._show_filled(before)
        _tell("""\
            Some orders are shipped, and a customer asks to be forgotten. A file that has one of
            those rows is written anew, and the old one stays for readers:""")
        self._write(upsert)
        self._write(delete)

    def plan(self) -> None:
        """Show what the table lacks."""
        self._check_rows()
        self._head("What is due")
        _tell(f"""\
            {self._data_files()} lie there by now, {len(self._sizes())} of them with the newest
            rows. Each has some orders of everybody, so all are read for those of one customer.""")
        self._run("plan", self.folder / _SPEC, "-o", self.folder / _PLAN)
        _tell("""\
            Nothing is written to the table yet: a plan needs neither Spark nor Java, and reading is
            enough. plan.json is what a person reviews, and the most that apply does.""")

    def apply(self) -> int:
        """Do what was planned; the exit code."""
        self._head("What was reviewed is done")
        code = self._run("apply", self.folder / _PLAN)
        if code:
            _tell("The plan could not be finished here; what stopped it stands above.")
        return code

    def read(self) -> None:
        """Show which files a query reads."""
        self._head("What it brings")
        _tell("A read asks the index which files may hold its rows, and leaves out the others:")
        self._run("read", self.folder / _TABLE, *_QUERY, "--explain")

    def plan_again(self) -> None:
        """Show that nothing is due any more, and that the rows are what they were."""
        self._head("What is left")
        orders = self._check_rows()
        self._run("plan", self.folder / _SPEC)
        _tell(f"""\
            All {words.number(orders)} orders are there, each as it was brought last, in
            {len(self._sizes())} of {self._data_files()}; the others can be read as of the commits
            before, and go with a later clean. The timeline says all of it in Hudi's own words: any
            reader or writer of Hudi goes on from here.""")

    def _write(self, batch: Batch) -> None:
        from reconciler.demo.writing import write_batch  # noqa: PLC0415 (Arrow)
        from reconciler.render.write import written_text  # noqa: PLC0415

        rows = _rows_of(self.folder, batch)
        self._show("reconciler", "write", *self._typed(self.folder / _SPEC, rows),
                   "--operation", batch.operation)  # fmt: skip
        emit(written_text(self.spec.name, batch.operation, write_batch(self.spec, batch)))

    def _run(self, command: str, *arguments: str | Path) -> int:
        """Show a command as it is typed in the folder, and run it; its exit code."""
        from reconciler.cli.app import program  # noqa: PLC0415 (it imports us by our name)

        self._show("reconciler", command, *self._typed(*arguments))
        code: int = program([command])(
            [command, *map(str, arguments)], standalone_mode=False, prog_name="reconciler"
        )
        return code

    def _typed(self, *arguments: str | Path) -> list[str]:
        return [
            str(one.relative_to(self.folder)) if isinstance(one, Path) else one for one in arguments
        ]

    def _show(self, *command: str) -> None:
        emit(f"\n{self.paint.strong(f'$ {shlex.join(command)}')}\n")

    def _show_filled(self, before: Sizes) -> None:
        from reconciler.demo.showing import began, changes  # noqa: PLC0415

        assert self.spec.files is not None, "it is the demo's own"
        after = self._sizes()
        lines = changes(before, after, self.spec.files.target, self.paint)
        emit("\n" + "".join(f"{line}\n" for line in lines))
        new = words.count(began(before, after), "new file")
        _tell(f"{words.count(len(before), 'small file')} filled, {new}.")

    def _sizes(self) -> Sizes:
        from reconciler.demo.looking import sizes_of  # noqa: PLC0415 (Arrow)

        return sizes_of(self.storage)

    def _check_rows(self) -> int:
        """How many orders there are; ReconcilerError unless they are those that were brought."""
        from reconciler.demo.looking import rows_of  # noqa: PLC0415 (Arrow)
        from reconciler.demo.orders import SCHEMA, left  # noqa: PLC0415

        found = rows_of(self.storage, SCHEMA).sort_by("order_id")
        if not found.equals(left(self.written)):
            raise ReconcilerError(
                f"{self.storage.location}: its rows are not those that were written (an error of "
                "this program, please report it)"
            )
        return len(found)

    def _data_files(self) -> str:
        return words.count(len(list(self.folder.glob(f"{_TABLE}/*/*.parquet"))), "data file")

    def _head(self, title: str) -> None:
        line = "─" * (_WIDTH - len(title) - 4)
        emit(f"\n{self.paint.strong(f'── {title} {line}')}\n")


def _tell(text: str) -> None:
    """A paragraph, wrapped."""
    said = " ".join(line.strip() for line in text.splitlines())
    emit("\n" + textwrap.fill(said, _WIDTH) + "\n")
