"""Statistics of a corpus, as in Table 1 of the paper and a little more, in one pass and in memory of one batch.

All shares and averages are quotients of counts that are kept, so statistics of several parts add up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.errors import CorpusError
from hilap.taxonomy.graph import Taxonomy


@runtime_checkable
class Streamed(Protocol):
    """Anything that gives its examples batch by batch, as a `Corpus` does."""

    taxonomy: Taxonomy

    def batches(self) -> Iterable[Examples]:
        """The examples, some at a time."""


@dataclass(frozen=True)
class CorpusStatistics:
    """What a corpus is like; labels are counted with all their ancestors, the root is no label."""

    taxonomy: Taxonomy
    documents: int
    label_counts: tuple[int, ...]  # documents at each label, in the taxonomy's order
    most_labels: int  # of one document
    documents_without_labels: int
    ending_at_inner: int  # documents with a most specific label that has children
    on_several_paths: int  # documents with more than one most specific label
    documents_with_text: int = 0
    words: int = 0  # pieces of text between white space
    features: int | None = None  # columns of the feature rows
    values: int = 0  # cells of the feature rows
    missing_values: int = 0  # of them, those without a value

    @property
    def labels(self) -> int:
        """The number of labels in the taxonomy: the paper's |L|."""
        return len(self.taxonomy)

    @property
    def structure(self) -> str:
        """`tree` or `DAG`."""
        return "tree" if self.taxonomy.is_tree else "DAG"

    @property
    def levels(self) -> int:
        """The number of levels, along the longest ways."""
        return self.taxonomy.depth

    @property
    def average_labels(self) -> float:
        """Labels of one document on average, ancestors included: the paper's Avg(|L_i|)."""
        return _share(sum(self.label_counts), self.documents)

    @property
    def inner_share(self) -> float:
        """The share of documents that end at an inner label: one of their most specific labels has children."""
        return _share(self.ending_at_inner, self.documents)

    @property
    def several_paths_share(self) -> float:
        """The share of documents on several paths: they have more than one most specific label."""
        return _share(self.on_several_paths, self.documents)

    @property
    def labels_without_documents(self) -> tuple[str, ...]:
        """The labels at which no document is."""
        return tuple(label for label, n in zip(self.taxonomy.labels, self.label_counts, strict=True) if not n)

    @property
    def by_level(self) -> tuple[tuple[int, int, int], ...]:
        """(level, labels there, labels there with documents) from the top; levels along the longest ways."""
        level = self.taxonomy.longest_levels
        there = np.bincount(level, minlength=1)
        used = np.bincount(level[np.array(self.label_counts, dtype=np.int64) > 0], minlength=len(there))
        return tuple((i, int(there[i]), int(used[i])) for i in range(1, len(there)))

    @property
    def average_words(self) -> float | None:
        """Words of one text on average; None where there are no texts."""
        return self.words / self.documents_with_text if self.documents_with_text else None

    @property
    def missing_share(self) -> float | None:
        """The share of feature values that are missing; None where there are no features."""
        return None if self.features is None else _share(self.missing_values, self.values)

    def to_json(self) -> dict[str, Any]:
        """All figures as plain JSON values; those of texts or features only where there are any."""
        value: dict[str, Any] = {
            "documents": self.documents,
            "labels": self.labels,
            "structure": self.structure,
            "levels": self.levels,
            "average_labels": self.average_labels,
            "most_labels": self.most_labels,
            "several_paths_share": self.several_paths_share,
            "inner_share": self.inner_share,
            "documents_without_labels": self.documents_without_labels,
            "labels_without_documents": len(self.labels_without_documents),
            "by_level": [{"level": i, "labels": n, "with_documents": used} for i, n, used in self.by_level],
        }
        if self.average_words is not None:
            value["average_words"] = self.average_words
        if self.features is not None:
            value |= {"features": self.features, "missing_share": self.missing_share}
        return value

    def rows(self) -> list[tuple[str, str]]:
        """The figures as (what, how much) for a table that people read."""
        used = ", ".join(f"{used:,} of {n:,}" for _, n, used in self.by_level)
        rows = [
            ("documents", f"{self.documents:,}"),
            ("labels", f"{self.labels:,} ({self.structure}, {self.levels} levels)"),
            ("labels per document", f"{self.average_labels:.2f} on average, {self.most_labels:,} at most"),
            ("on several paths", f"{self.several_paths_share:.0%} of documents"),
            ("ending at an inner label", f"{self.inner_share:.0%} of documents"),
            ("documents without labels", f"{self.documents_without_labels:,}"),
            ("labels without documents", f"{len(self.labels_without_documents):,}"),
            ("labels with documents, by level", used or "none"),
        ]
        if self.average_words is not None:
            rows.append(("words per text", f"{self.average_words:.1f} on average"))
        if self.features is not None:
            rows.append(("features", f"{self.features:,}, {self.missing_share or 0:.1%} of values missing"))
        return rows


def statistics(source: Examples | Streamed | Iterable[Examples]) -> CorpusStatistics:
    """Count through examples, a corpus that is read in batches, or several blocks of examples over one taxonomy.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Shops": []})
    >>> found = statistics(Examples.of(taxonomy, [["Bars", "Shops"], ["Food"]]))
    >>> found.average_labels, found.most_labels, found.several_paths_share, found.inner_share
    (2.0, 3, 0.5, 0.5)
    """
    if isinstance(source, Examples):
        return _of_block(source)
    if isinstance(source, Streamed):
        return combine(_chained(_empty(source.taxonomy), source.batches()))
    return combine(_of_block(block) for block in source)


def combine(parts: Iterable[CorpusStatistics]) -> CorpusStatistics:
    """The statistics of several parts (train, valid, test) as one: exactly those of all their documents together."""
    total: CorpusStatistics | None = None
    for part in parts:
        total = part if total is None else _added(total, part)
    if total is None:
        raise CorpusError("there is nothing to count: no examples were given")
    return total


def _chained(first: CorpusStatistics, blocks: Iterable[Examples]) -> Iterable[CorpusStatistics]:
    yield first
    for block in blocks:
        yield _of_block(block)


def _empty(taxonomy: Taxonomy) -> CorpusStatistics:
    return CorpusStatistics(taxonomy, 0, (0,) * len(taxonomy), 0, 0, 0, 0)


def _of_block(block: Examples) -> CorpusStatistics:
    taxonomy = block.taxonomy
    per_document = np.diff(block.labels.indptr)
    most_specific = taxonomy.most_specific_matrix(block.labels)
    inner = (np.diff(taxonomy.child_matrix.indptr) > 0).astype(np.int32)
    texts = block.texts or ()
    columns, values, missing = _feature_counts(block.features)
    return CorpusStatistics(
        taxonomy,
        documents=len(block),
        label_counts=tuple(np.bincount(block.labels.indices, minlength=len(taxonomy)).tolist()),
        most_labels=int(per_document.max(initial=0)),
        documents_without_labels=int((per_document == 0).sum()),
        ending_at_inner=int((most_specific @ inner > 0).sum()),
        on_several_paths=int((np.diff(most_specific.indptr) > 1).sum()),
        documents_with_text=len(texts),
        words=sum(len(text.split()) for text in texts),
        features=columns,
        values=values,
        missing_values=missing,
    )


def _feature_counts(features: Any) -> tuple[int | None, int, int]:
    """Columns, cells and missing values of feature rows; a zero that a sparse array leaves out is not missing."""
    if features is None:
        return None, 0, 0
    held: NDArray[Any] = features.data if sparse.issparse(features) else np.asarray(features)
    rows, columns = features.shape
    return int(columns), int(rows) * int(columns), int(np.isnan(held).sum())


def _added(a: CorpusStatistics, b: CorpusStatistics) -> CorpusStatistics:
    if a.taxonomy is not b.taxonomy and a.taxonomy != b.taxonomy:
        raise CorpusError("parts over different taxonomies cannot be counted together")
    if a.features is not None and b.features is not None and a.features != b.features:
        raise CorpusError(f"parts with {a.features} and {b.features} features cannot be counted together")
    counts = np.array(a.label_counts, dtype=np.int64) + np.array(b.label_counts, dtype=np.int64)
    return CorpusStatistics(
        a.taxonomy,
        documents=a.documents + b.documents,
        label_counts=tuple(counts.tolist()),
        most_labels=max(a.most_labels, b.most_labels),
        documents_without_labels=a.documents_without_labels + b.documents_without_labels,
        ending_at_inner=a.ending_at_inner + b.ending_at_inner,
        on_several_paths=a.on_several_paths + b.on_several_paths,
        documents_with_text=a.documents_with_text + b.documents_with_text,
        words=a.words + b.words,
        features=b.features if a.features is None else a.features,
        values=a.values + b.values,
        missing_values=a.missing_values + b.missing_values,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
