"""Rules for how many commits stay on the active timeline."""

from __future__ import annotations

from typing import Final

#: a word that may follow the numbers of ``timeline.keep``
COMMITS_WORD: Final = "commits"
#: commits that Hudi's archiver keeps beside those that a clean retains, by default
_SPARE_COMMITS: Final = 10
#: more does not fit the numbers of ``timeline.keep``
_MOST_COMMITS: Final = 900_000


def find_keep_problem(keep: str | None, commits: int | None) -> tuple[str, str] | None:
    """Return what is wrong with ``timeline.keep``, and what to write instead; None if nothing.

    ``commits``: those of the retention, which cleans need on the active timeline.

    >>> find_keep_problem("30..50", 10), find_keep_problem(None, 10)
    (None, None)
    >>> find_keep_problem("20..30", 24)[1]
    'write 34..44, or lower retention.commits'
    """
    if keep is None:
        return None
    low, _, high = keep.removesuffix(COMMITS_WORD).partition("..")
    least, most = int(low), int(high)
    if least >= most:
        greater = max(least, most) + (least == most) * _SPARE_COMMITS
        message = f"{least}..{most} leaves no room: the second number must be the greater one"
        return message, f"write {min(least, most)}..{greater}"
    if commits is None or least > commits:
        return None
    message = f"its first number, {least}, must be more than retention.commits, {commits}"
    enough = commits + _SPARE_COMMITS
    if enough > _MOST_COMMITS:
        return message, "lower retention.commits"
    return message, f"write {enough}..{enough + most - least}, or lower retention.commits"
