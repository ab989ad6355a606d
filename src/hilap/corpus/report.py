"""What happened while a corpus was read: how many documents, which lines were skipped, which labels were dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SHOWN = 10  # so many skipped lines are kept with their reasons; the others are only counted


class SkippedLine(NamedTuple):
    """A line that was left out, and why."""

    where: str
    line: int
    reason: str


@dataclass
class ReadReport:
    """The bookkeeping of one pass over a corpus. It grows while the corpus is read."""

    documents: int = 0
    skipped: int = 0
    skipped_lines: list[SkippedLine] = field(default_factory=list)
    """The first ten skipped lines."""
    dropped: Counter[str] = field(default_factory=Counter)
    without_labels: int = 0
    """Documents with no label, given so or left so because all their labels were dropped."""
    duplicate_ids: int = 0
    """Documents whose id an earlier document had."""
    _seen: SeenIds = field(default_factory=lambda: SeenIds(), repr=False, compare=False)

    @property
    def dropped_labels(self) -> dict[str, int]:
        """Unknown labels that were left out and how often each occurred, most frequent first."""
        return dict(self.dropped.most_common())

    def skip(self, where: str, line: int, reason: str) -> None:
        """Note a line that is left out."""
        self.skipped += 1
        if len(self.skipped_lines) < SHOWN:
            self.skipped_lines.append(SkippedLine(where, line, reason))

    def count(self, ids: Sequence[str], label_counts: NDArray[Any]) -> None:
        """Note a block of documents: their ids and how many labels each has."""
        self.documents += len(ids)
        self.without_labels += int((label_counts == 0).sum())
        self.duplicate_ids += self._seen.add(ids)

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "documents": self.documents,
            "skipped": self.skipped,
            "skipped_lines": [line._asdict() for line in self.skipped_lines],
            "dropped_labels": self.dropped_labels,
            "without_labels": self.without_labels,
            "duplicate_ids": self.duplicate_ids,
        }


class SeenIds:
    """Counts repeated ids in eight bytes a document: sorted runs of hashes, merged when they are of like size."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def add(self, ids: Sequence[str]) -> int:
        """Remember these ids; how many of them were there before."""
        fresh = np.unique(np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids)))
        repeated = len(ids) - len(fresh)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, fresh), len(run) - 1)
            known = run[at] == fresh
            repeated += int(known.sum())
            fresh = fresh[~known]
        if len(fresh):
            self._runs.append(fresh)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(np.sort(np.concatenate([before, last])))
        return repeated


__all__ = ["ReadReport", "SeenIds", "SkippedLine"]
