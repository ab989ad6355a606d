"""Examples: documents with their labels, one at a time or many as columns.

Labels are closed upward here: whatever way they were given, an example carries its labels *and* all their ancestors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.errors import CorpusError
from hilap.taxonomy.graph import Indicator, Taxonomy


@dataclass(frozen=True, slots=True)
class Example:
    """One document: an id, a text or a row of features (or both), and its labels with all their ancestors."""

    id: str
    labels: tuple[str, ...] = ()
    text: str | None = None
    features: NDArray[np.float32] | None = None  # (F,) NaN where a value is missing
    group: str | None = None  # documents of one group stay together when a corpus is split


@dataclass(frozen=True)
class Examples:
    """Many documents as columns: what encoders, trainers and metrics work on.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> examples = Examples.of(taxonomy, [["Bars"], []], texts=["craft beer", "a lawyer"])
    >>> examples[0].labels
    ('Food', 'Bars')
    >>> len(examples.take([1]))
    1
    """

    taxonomy: Taxonomy
    ids: Sequence[str]
    labels: Indicator  # (n, L) closed upward
    texts: Sequence[str] | None = None
    features: Any = None  # (n, F) float32: an array with NaN where a value is missing, or a sparse csr_array
    groups: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for what, column in (
            ("labels", self.labels),
            ("texts", self.texts),
            ("features", self.features),
            ("groups", self.groups),
        ):
            rows = None if column is None else column.shape[0] if hasattr(column, "shape") else len(column)
            if rows is not None and rows != len(self.ids):
                raise CorpusError(
                    f"there are {len(self.ids)} ids but {rows} rows of {what}; give one for each document"
                )

    @classmethod
    def of(
        cls,
        taxonomy: Taxonomy,
        label_sets: Iterable[Iterable[str]],
        *,
        texts: Sequence[str] | None = None,
        features: Any = None,
        ids: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
    ) -> Examples:
        """Examples from label ids at any depth; ids default to the row numbers from 0."""
        labels = taxonomy.encode(label_sets, close=True)
        given = [str(i) for i in range(labels.shape[0])] if ids is None else list(ids)
        return cls(taxonomy, given, labels, texts, features, groups)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Example]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Example:
        row = range(len(self))[i]  # negative numbers and IndexError as everywhere in Python
        mine = self.labels.indices[self.labels.indptr[row] : self.labels.indptr[row + 1]]
        return Example(
            id=self.ids[row],
            labels=tuple(self.taxonomy.labels[k] for k in mine),
            text=None if self.texts is None else self.texts[row],
            features=None if self.features is None else _dense_row(self.features, row),
            group=None if self.groups is None else self.groups[row],
        )

    @property
    def label_sets(self) -> list[tuple[str, ...]]:
        """The label ids of every document."""
        return self.taxonomy.decode(self.labels)

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Examples:
        """The documents of these rows, in this order."""
        chosen = np.asarray(rows, dtype=np.int64)
        return Examples(
            self.taxonomy,
            _pick(self.ids, chosen),
            self.labels[chosen],
            None if self.texts is None else _pick(self.texts, chosen),
            None if self.features is None else self.features[chosen],
            None if self.groups is None else _pick(self.groups, chosen),
        )

    @classmethod
    def join(cls, parts: Sequence[Examples]) -> Examples:
        """Several blocks over one taxonomy as one."""
        if not parts:
            raise CorpusError("there is nothing to join: no block of examples was given")
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        if any(part.taxonomy is not first.taxonomy and part.taxonomy != first.taxonomy for part in parts):
            raise CorpusError("blocks of examples over different taxonomies cannot be joined")
        return cls(
            first.taxonomy,
            [i for part in parts for i in part.ids],
            sparse.vstack([part.labels for part in parts], format="csr"),
            None if first.texts is None else [t for part in parts for t in (part.texts or ())],
            None if first.features is None else _stack([part.features for part in parts]),
            None if first.groups is None else [g for part in parts for g in (part.groups or ())],
        )


def _pick(column: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
    return [column[i] for i in rows]


def _dense_row(features: Any, row: int) -> NDArray[np.float32]:
    if sparse.issparse(features):
        return np.asarray(features[[row]].toarray()[0], dtype=np.float32)
    return np.asarray(features[row], dtype=np.float32)


def _stack(parts: Sequence[Any]) -> Any:
    """Features of several blocks, kept as those of the first are."""
    if sparse.issparse(parts[0]):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate([part.toarray() if sparse.issparse(part) else part for part in parts])
