"""What a linter says, and what it looks at: findings, and a draft as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from hilap.taxonomy.draft import Draft, Entry

Severity: TypeAlias = Literal["error", "warning", "note"]
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

MOST_SHOWN = 30  # labels of one cycle or chain that a message spells out; `Finding.labels` has them all


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or odd, where it stands, and what to do about it."""

    severity: Severity
    code: str
    message: str
    where: str
    line: int
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.where}: {self.severity}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        return {**asdict(self), "labels": list(self.labels)}


@dataclass(frozen=True, slots=True)
class Known:
    """A draft as arrays: the first entry of every id, and each edge between known labels once."""

    entries: list[Entry]
    repeated: list[Entry]  # the later entries of an id that was there already
    index: dict[str, int]
    child: NDArray[np.int64]  # (E,)
    parent: NDArray[np.int64]  # (E,)
    given: NDArray[np.int64]  # (n,) how many parents the file gives, known or not

    @classmethod
    def of(cls, draft: Draft) -> Known:
        """Look everything up once: what follows works on the arrays."""
        index: dict[str, int] = {}
        entries: list[Entry] = []
        repeated: list[Entry] = []
        for entry in draft.entries:
            (entries if index.setdefault(entry.label, len(entries)) == len(entries) else repeated).append(entry)
        given = np.fromiter((len(entry.parents) for entry in entries), dtype=np.int64, count=len(entries))
        names = chain.from_iterable(entry.parents for entry in entries)
        parent = np.fromiter((index.get(name, -1) for name in names), dtype=np.int64, count=int(given.sum()))
        child = np.repeat(np.arange(len(entries)), given)
        real = (parent >= 0) & (parent != child)
        pairs = np.unique(child[real] * max(len(entries), 1) + parent[real])
        return cls(entries, repeated, index, *np.divmod(pairs, max(len(entries), 1)), given)

    @property
    def labels(self) -> list[str]:
        """The ids, each once, in the order of the file."""
        return [entry.label for entry in self.entries]

    @property
    def n_parents(self) -> NDArray[np.int64]:
        """(n,) known parents of each label, each counted once."""
        return np.bincount(self.child, minlength=len(self.entries))

    @property
    def n_children(self) -> NDArray[np.int64]:
        """(n,) children of each label."""
        return np.bincount(self.parent, minlength=len(self.entries))

    @property
    def is_forest(self) -> bool:
        """Whether no label has two known parents."""
        return bool((self.n_parents <= 1).all())

    def components(self, connection: Literal["strong", "weak"]) -> NDArray[np.int64]:
        """(n,) the number of the connected piece that each label belongs to."""
        shape = (len(self.entries),) * 2
        ones = np.ones(len(self.child), dtype=np.int8)
        edges = sparse.csr_array((ones, (self.child, self.parent)), shape=shape)
        return np.asarray(csgraph.connected_components(edges, connection=connection)[1], dtype=np.int64)


def finding(
    draft: Draft, severity: Severity, code: str, message: str, entry: Entry, labels: Iterable[str] | None = None
) -> Finding:
    """A finding on the line of an entry, about that label where no others are named."""
    about = (entry.label,) if labels is None else tuple(labels)
    return Finding(severity, code, message, draft.where(entry.line), entry.line, about)


def quoted(label: str) -> str:
    """A label as it stands in messages: control characters visible, and never a whole page."""
    return repr(label if len(label) <= 200 else label[:197] + "...")


def spelled(entries: Sequence[Entry], between: str, most: int = MOST_SHOWN) -> str:
    """Labels one after the other; of very many the first and the last."""
    if len(entries) <= most:
        return between.join(quoted(entry.label) for entry in entries)
    words = [quoted(entry.label) for entry in (*entries[: most - 2], *entries[-2:])]
    return between.join([*words[:-2], f"... {len(entries) - most:,} more ...", *words[-2:]])


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Errors first, then warnings, then notes; within each by line."""
    return sorted(found, key=lambda finding: (_SEVERITIES.index(finding.severity), finding.line))


__all__ = ["MOST_SHOWN", "Finding", "Known", "Severity", "finding", "in_order", "quoted", "spelled"]
