"""Choose which small files of a partition become one file with the rows of a small batch.

A file that takes each batch is written again whole each time, so a row is written as often as half
the batches that fill a file. With a few files, rows move up instead: the smallest file takes batch
after batch, and its rows join the next larger file only when they are worth rewriting that one.
With three files, a row is then written about as often as the cube root of that number tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from reconciler.lazy_dataclass import dataclass

MIB: Final = 1024 * 1024
#: the files of a partition between which rows move
_LEVELS: Final = 3
#: files that rows join may exceed the target by this factor; the writer allows 1.15
_MAX_FILL: Final = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTiers:
    """How many small files a partition may have, and how rows move between them.

    ``free_bytes``: a file whose old and new rows have so few bytes takes every batch.
    ``max_moved``: the most rows that one file may take from others, None without a limit.
    """

    max_small: int = 3
    free_bytes: int = MIB
    max_moved: int | None = None

    def __post_init__(self) -> None:
        assert self.max_small >= _LEVELS, "rows move between three files"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFile:
    """A small file. ``data``: bytes of its rows; ``fixed``: its other bytes.

    ``is_movable``: its rows may move, and it may take others'.
    """

    data: float
    fixed: float
    is_movable: bool = True

    @property
    def size(self) -> float:
        """Bytes of the file."""
        return self.data + self.fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class TierChoice:
    """``into``: the number of the file that takes the batch, None for a new one.

    ``sources``: numbers of the files whose old rows join it.
    """

    into: int | None
    sources: tuple[int, ...] = ()


def choose_tier(
    tiers: FileTiers, files: Sequence[TierFile], batch: float, *, target: int, per_row: float
) -> TierChoice:
    """Return where a batch of so many bytes goes; a single file may be too full for all of it.

    ``files``: the small files of a partition, smallest first. Until there are ``max_small``, a
    batch starts another file, except beside one that costs next to nothing to rewrite. From then
    on the sizes tell how many batches each of the smallest three has: if the first has m, the
    second should have m²/2, and the third m³/6, as when each starts anew for every batch of the
    next larger one. The batch goes into the first file that does not exceed this, together with
    the rows of all smaller ones.
    """
    if not files or (len(files) < tiers.max_small and not _is_cheap(tiers, files[0], batch)):
        return TierChoice(into=None)
    if len(files) < tiers.max_small:
        return TierChoice(into=0)
    for option in _list_options(tiers, files[:_LEVELS], batch):
        if _is_possible(tiers, files, option, batch, target=target, per_row=per_row):
            return option
    return TierChoice(into=0)


def _is_cheap(tiers: FileTiers, file: TierFile, batch: float) -> bool:
    """Return whether a file costs next to nothing to rewrite, so that it takes the batch."""
    return file.data + batch <= tiers.free_bytes or file.data <= batch / 2


def _list_options(
    tiers: FileTiers, files: Sequence[TierFile], batch: float
) -> Iterator[TierChoice]:
    """Yield the choices for three files, the best one first."""
    first, second, third = files
    together = first.data + batch
    if together <= max(tiers.free_bytes, (2 * batch * second.size) ** 0.5):
        yield TierChoice(into=0)
    # m²/2 of equal batches, by what comes up at a time: a tiny batch after larger ones, which has
    # that come up, must not have the third file written again
    if together + second.data > (1.5 * together * third.size) ** 0.5:
        yield TierChoice(into=2, sources=(0, 1))
        # not all fit into one file: the largest two that do, which leaves fewer small files
        for source, into in sorted(combinations(range(_LEVELS), 2), reverse=True):
            yield TierChoice(into=into, sources=(source,))
    yield TierChoice(into=1, sources=(0,))


def _is_possible(
    tiers: FileTiers,
    files: Sequence[TierFile],
    choice: TierChoice,
    batch: float,
    *,
    target: int,
    per_row: float,
) -> bool:
    assert choice.into is not None, "an existing file"
    moved = sum(files[number].data for number in choice.sources)
    full = files[choice.into].size + moved + batch
    if not choice.sources:
        return full <= target
    if not all(files[number].is_movable for number in (choice.into, *choice.sources)):
        return False
    if tiers.max_moved is not None and moved / per_row > tiers.max_moved:
        return False
    return full <= _MAX_FILL * target
