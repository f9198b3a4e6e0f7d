"""The verification of one table of a command: its result, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.unreadable_table import OnCrash, report_problem
from reconciler.state.metadata_differences import MetadataVerification
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.verification.verify import verify_metadata

if TYPE_CHECKING:
    from reconciler.spec.model import TableSpec

#: the exit code for differences
DIFFERENT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerification:
    """``found`` is None if the table could not be read; then ``error`` says why.

    ``exit_code``: the command's for this table alone.
    """

    name: str
    path: str
    found: MetadataVerification | None = None
    error: str | None = None
    error_code: int = field(default=0, metadata={"name": None})

    @property
    def exit_code(self) -> int:
        if self.found is None:
            return self.error_code
        return DIFFERENT if self.found.difference_count else 0


def verify_table(
    spec: TableSpec,
    open_storage: Callable[..., Any],
    sample: float,
    observed_ms: int,
    on_crash: OnCrash | None,
) -> TableVerification:
    """Verify the table of a spec. Raises nothing: what goes wrong is in the result.

    ``on_crash`` gets errors that are bugs of this program.
    """
    made = TableVerification(name=spec.name, path=spec.path)
    try:
        storage = ReadOnlyStorage(open_storage(spec.path, spec.storage_options))
        found = verify_metadata(storage, spec, sample=sample, observed_ms=observed_ms)
        return replace(made, found=found)
    except Exception as error:  # noqa: BLE001 (one table must not stop the others)
        code = error.exit_code if isinstance(error, ReconcilerError) else 1
        return replace(made, error=report_problem(spec, error, on_crash), error_code=code)
