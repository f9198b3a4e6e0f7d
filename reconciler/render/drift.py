"""Describe how a table differs from its spec: what is observed, and what is declared."""

from __future__ import annotations

from typing import Final

from reconciler.plans.model import Finding
from reconciler.render import words

#: per field that limits what is observed: what is observed, its unit, and what the spec does
_LIMITS: Final = {
    "retention.commits": ("readable: ", "commit", "keeps"),
    "retention.hours": ("readable: ", "hour", "keeps"),
    "retention.fileVersions": ("kept: ", "version", "keeps"),
    "retention.partitions": ("oldest: ", "", "keeps"),
    "orphans.olderThan": ("oldest ", "", "removes from"),
    "timeline.keep": ("active: ", "commit", "keeps"),
    "files.target": ("mean size ", "", "targets"),
    "files.large": ("up to ", "", "allows"),
    "clustering.when.overlapAbove": ("observed ", "", "allows"),
    "clustering.when.smallFileShareAbove": ("observed ", "", "allows"),
    "files.when.smallFileShareAbove": ("observed ", "", "allows"),
    "clustering.when.gainAbove": ("predicted ", "", "asks for more than"),
    "compaction.afterDeltaCommits": ("observed: ", "deltacommit", "compacts from"),
    "compaction.when.logShareAbove": ("up to ", "", "allows"),
    "compaction.when.logFilesAbove": ("up to ", "log file", "allows"),
    "compaction.when.olderThan": ("oldest ", "", "allows"),
}
_MEAN_SIZE: Final = "files.target"
_SCAN: Final = ".maxScan"
_SHARES: Final = (_SCAN, ".gainAbove", ".smallFileShareAbove", ".logShareAbove")


def describe_difference(finding: Finding) -> str:
    """Return what a table has and what its spec declares.

    An arrow leads from one setting to another; a limit is set against what is observed.

    >>> describe_difference(Finding("retention.commits", 2, 5, "2 file slices exceed it"))
    'readable: 5 commits; spec keeps 2'
    >>> describe_difference(Finding("clustering.curve", "hilbert", "z-order", "of 2026"))
    'z-order → hilbert'
    """
    actual, desired = (_format_value(finding, v) for v in (finding.actual, finding.desired))
    observed, unit, verb = _LIMITS.get(finding.field, ("", "", ""))
    if finding.field.endswith(_SCAN):
        observed, verb = "reads ", "allows"
    if finding.field == _MEAN_SIZE and finding.actual is None:
        observed, actual = "log files only", ""
    if not verb:
        return f"{actual} → {desired}"
    if unit and type(finding.actual) is int:
        actual = words.format_count(finding.actual, unit)
    return f"{observed}{actual}; spec {verb} {desired}"


def _format_value(finding: Finding, value: object) -> str:
    """Return a value of a finding; those of ``files`` are bytes."""
    if finding.field.endswith(_SHARES) and isinstance(value, float):
        return f"{value * 100:.3g} %"
    is_size = finding.field.startswith("files.") and type(value) is int
    return words.format_size(value) if is_size else words.format_value(value)  # type: ignore[arg-type]
